import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import { sendShared } from '../http/limits/large-answers.ts'
import { toOpenApi30 } from '../openapi/openapi-30.ts'
import type { ReferencePage } from './reference.ts'

const DOCUMENT = { method: ['GET', 'HEAD'], exposeHeadRoute: false, schema: { hide: true } }

/**
 * Serves the reference at `/docs`, and the OpenAPI document as `/openapi.json` (3.1) and `/openapi-3.0.json`. The
 * reference works offline, because this server serves all its parts. Each page is built once and shared by all answers.
 */
export function registerDocs(api: Api): void {
  let pages: Promise<ReadonlyMap<string, ReferencePage>> | undefined

  /** Loads the 4 MB library of the reference at the first request instead of at the start. */
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

  serveDocument('/openapi.json', document => document)
  serveDocument('/openapi-3.0.json', toOpenApi30)

  function serveDocument(url: string, convert: (document: Record<string, unknown>) => object): void {
    // The routes are complete only when the server is ready.
    let bytes: Buffer | undefined
    api.route({
      ...DOCUMENT,
      url,
      handler: async (request, reply) => {
        bytes ??= Buffer.from(JSON.stringify(convert({ ...api.swagger() })))
        return sendShared(request, reply.type('application/json; charset=utf-8'), bytes)
      },
    })
  }
}

function sendPage(request: FastifyRequest, reply: FastifyReply, page: ReferencePage): FastifyReply {
  return sendShared(request, reply.code(page.status).headers(page.headers), page.body)
}
