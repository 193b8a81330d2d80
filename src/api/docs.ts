import type { FastifyReply } from 'fastify'
import type { Api } from './context.ts'
import type { ReferencePage } from './reference.ts'

/** The reference for people at `/docs`, readable offline: everything in it comes from this server. */
export function registerDocs(api: Api): void {
  let pages: Promise<ReadonlyMap<string, ReferencePage>> | undefined

  /** The library of the reference is 4 MB of script: loaded by the first request for it, not by every start. */
  function load(): Promise<ReadonlyMap<string, ReferencePage>> {
    pages ??= import('./reference.ts')
      .then(({ renderReference }) => renderReference('docs'))
      .catch(error => {
        pages = undefined
        throw error
      })
    return pages
  }

  for (const path of ['/docs', '/docs/', '/docs/js/scalar.js']) {
    api.get(path, { schema: { hide: true } }, async (_request, reply) => sendPage(reply, (await load()).get(path)!))
  }
}

function sendPage(reply: FastifyReply, { status, headers, body }: ReferencePage): FastifyReply {
  return reply.code(status).headers(headers).send(body)
}
