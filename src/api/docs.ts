import { hash } from 'node:crypto'
import scalar from '@scalar/fastify-api-reference'
import type { Api } from './context.ts'
import { PAGE_HEADERS } from './security-headers.ts'

const INLINE_SCRIPT = /<script(?![^>]*\ssrc=)[^>]*>([\s\S]*?)<\/script>/g

/** The reference for people at `/docs`, readable offline: everything in it comes from this server. */
export function registerDocs(api: Api): void {
  api.register(async (docs: Api) => {
    docs.addHook('onRequest', (request, _reply, done) => {
      // The reference makes a URL of it, and HTTP/1.0 needs none.
      request.raw.headers.host ??= 'localhost'
      done()
    })
    docs.addHook('onSend', async (_request, reply, payload) => {
      const type = String(reply.getHeader('content-type') ?? '')
      if (typeof payload === 'string' && type.startsWith('text/html')) {
        reply.headers(PAGE_HEADERS).header('content-security-policy', pagePolicy(payload))
      }
      return payload
    })
    await docs.register(scalar, {
      routePrefix: '/docs',
      configuration: {
        url: '/openapi.json',
        pageTitle: 'Pombal API',
        withDefaultFonts: false,
        telemetry: false,
        agent: { disabled: true },
        mcp: { disabled: true },
        // Both lead to services elsewhere.
        showDeveloperTools: 'never',
        hideClientButton: true,
      },
    })
  })
}

/** Only this server's scripts and the page's own inline one, by its digest. The page injects its styles. */
function pagePolicy(html: string): string {
  const digests = Array.from(
    html.matchAll(INLINE_SCRIPT),
    ([, script = '']) => `'sha256-${hash('sha256', script, 'base64')}'`,
  )
  return [
    "default-src 'none'",
    `script-src 'self' ${digests.join(' ')}`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
}
