import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusal.ts'
import type { Api } from '../context.ts'
import { sendShared } from '../http/limits/large-answers.ts'
import { PAGE_HEADERS } from '../http/security-headers.ts'
import type { UnknownPage } from '../http/unknown-paths.ts'

/** Every address of the panel. None of them is under /v1, /admin or /docs. */
const PAGES = [
  '/',
  ...[
    '/sign-in',
    '/sign-in/oidc',
    '/settings',
    '/alerts',
    '/people',
    '/audit',
    '/invitation',
    '/link',
    '/guides',
    '/guides/:name',
    '/instances',
    '/instances/:id',
    '/instances/:id/:section',
  ].flatMap(path => [path, `${path}/`]),
]
const NONCE_PLACE = '__NONCE__'
const NONCE_BYTES = 18
const ONE_YEAR = 'public, max-age=31536000, immutable'
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

interface Asset {
  type: string
  bytes: Buffer
  /** Null if compression saves nothing. */
  brotli: Buffer | null
}

/**
 * Serves from memory the panel that was built into `dir`, so that no request can reach another file. Without a built
 * panel `/` redirects to the reference.
 * @returns a function that shows the panel's own page at an unknown address; undefined without a built panel
 */
export async function registerPanel(api: Api, dir: string): Promise<UnknownPage | undefined> {
  const page = await readFile(join(dir, 'index.html'), 'utf8').catch(() => null)
  if (page === null) {
    api.get('/', { schema: { hide: true } }, async (_request, reply) => reply.redirect('/docs/'))
    return undefined
  }
  const assets = await readAssets(join(dir, 'assets'))
  for (const url of PAGES) {
    api.get(url, { schema: { hide: true }, config: { quiet: true, alwaysServed: true } }, async (_request, reply) =>
      sendPage(reply, page),
    )
  }
  api.route<{ Params: { name: string } }>({
    method: ['GET', 'HEAD'],
    exposeHeadRoute: false,
    url: '/assets/:name',
    schema: { hide: true },
    config: { quiet: true, alwaysServed: true },
    handler: async (request, reply) => sendAsset(request, reply, assets.get(request.params.name)),
  })
  return (request, reply) => {
    const isPage = request.method === 'GET' && /\btext\/html\b/.test(request.headers.accept ?? '')
    if (isPage) sendPage(reply.code(404), page)
    return isPage
  }
}

async function readAssets(folder: string): Promise<ReadonlyMap<string, Asset>> {
  const names = await readdir(folder)
  const bytes = new Map(await Promise.all(names.map(async name => [name, await readFile(join(folder, name))] as const)))
  const assets = new Map<string, Asset>()
  for (const [name, content] of bytes) {
    const type = MEDIA_TYPES[extname(name)]
    if (type) assets.set(name, { type, bytes: content, brotli: bytes.get(`${name}.br`) ?? null })
  }
  return assets
}

function sendPage(reply: FastifyReply, page: string): FastifyReply {
  const nonce = randomBytes(NONCE_BYTES).toString('base64')
  return reply
    .headers(PAGE_HEADERS)
    .header('content-security-policy', pagePolicy(nonce))
    .type('text/html; charset=utf-8')
    .send(page.replaceAll(NONCE_PLACE, nonce))
}

/** Allows only this server's resources, no inline scripts, and the page's own style elements by nonce. */
function pagePolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "media-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

function sendAsset(request: FastifyRequest, reply: FastifyReply, asset: Asset | undefined): FastifyReply {
  if (!asset) throw new Refusal('not_found')
  const brotli = /\bbr\b/.test(request.headers['accept-encoding'] ?? '') ? asset.brotli : null
  if (brotli) reply.header('content-encoding', 'br')
  reply.header('cache-control', ONE_YEAR).header('vary', 'Accept-Encoding').type(asset.type)
  return sendShared(request, reply, brotli ?? asset.bytes)
}
