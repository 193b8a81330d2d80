import { hash } from 'node:crypto'
import scalar from '@scalar/fastify-api-reference'
import Fastify from 'fastify'
import { PAGE_HEADERS } from '../http/security-headers.ts'
import { REFERENCE_BAR, REFERENCE_CSS } from './reference-look.ts'

const INLINE_SCRIPT = /<script(?![^>]*\ssrc=)[^>]*>([\s\S]*?)<\/script>/g
const KEPT_HEADERS = ['content-type', 'location'] as const

/** A page of the reference, the same for every caller. */
export interface ReferencePage {
  status: number
  headers: Record<string, string>
  body: Buffer
}

/** @param prefix the first part of the paths, without slashes @returns the pages by path */
export async function renderReference(prefix: string): Promise<ReadonlyMap<string, ReferencePage>> {
  const renderer = Fastify({ logger: false })
  await renderer.register(scalar, {
    routePrefix: `/${prefix}`,
    configuration: {
      url: '/openapi.json',
      pageTitle: 'Pombal API',
      theme: 'none',
      customCss: REFERENCE_CSS,
      withDefaultFonts: false,
      telemetry: false,
      agent: { disabled: true },
      mcp: { disabled: true },
      // Both link to external services.
      showDeveloperTools: 'never',
      hideClientButton: true,
    },
  })
  const pages = new Map<string, ReferencePage>()
  for (const path of [`/${prefix}`, `/${prefix}/`, `/${prefix}/js/scalar.js`]) {
    const { statusCode: status, headers: given, rawPayload } = await renderer.inject(path)
    const kept = KEPT_HEADERS.flatMap(name => (given[name] === undefined ? [] : [[name, String(given[name])]]))
    const headers: Record<string, string> = Object.fromEntries(kept)
    const isHtml = headers['content-type']?.startsWith('text/html') === true
    const body = isHtml ? Buffer.from(withBar(rawPayload.toString())) : rawPayload
    if (isHtml) {
      Object.assign(headers, PAGE_HEADERS, { 'content-security-policy': pagePolicy(body.toString()) })
    }
    pages.set(path, { status, headers, body })
  }
  await renderer.close()
  return pages
}

function withBar(html: string): string {
  return html.replace('<html>', '<html lang="en">').replace('<body>', `<body>${REFERENCE_BAR}`)
}

/** Allows this server's scripts and the page's inline script by digest. The page injects its styles. */
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
