import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import { sendShared } from '../http/large-answers.ts'
import type { ReferencePage } from './reference.ts'

const DOCUMENT = { method: ['GET', 'HEAD'], exposeHeadRoute: false, schema: { hide: true } }

/**
 * The reference for people at `/docs`, readable offline: everything in it comes from this server; and `/openapi.json`.
 * Each is built once: a request for it costs no more than sending bytes that all answers share.
 */
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

  for (const url of ['/docs', '/docs/', '/docs/js/scalar.js']) {
    const handler = async (request: FastifyRequest, reply: FastifyReply) =>
      sendPage(request, reply, (await load()).get(url)!)
    api.route({ ...DOCUMENT, url, handler })
  }

  // The routes are complete only when the server is ready.
  let openApi: Buffer | undefined
  api.route({
    ...DOCUMENT,
    url: '/openapi.json',
    handler: async (request, reply) => {
      openApi ??= Buffer.from(JSON.stringify(api.swagger()))
      return sendShared(request, reply.type('application/json; charset=utf-8'), openApi)
    },
  })
}

function sendPage(request: FastifyRequest, reply: FastifyReply, page: ReferencePage): FastifyReply {
  return sendShared(request, reply.code(page.status).headers(page.headers), page.body)
}
