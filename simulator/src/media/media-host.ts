/**
 * The server that clients upload media files to and download them from, as the answer to `media_conn` names it. It always
 * uses TLS, because clients reach media hosts over `https:` only.
 *
 *   POST /mms/<type>/<token>?auth=…&token=…   the encrypted file; the token is its SHA-256
 *   GET  <direct path>                        the file, or a range of it
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'
import type { Fate, Scenario } from '../scenario/scenario.ts'
import { listen } from '../server/listen.ts'
import { type Node, node } from '../wire/nodes.ts'
import type { TlsCertificate } from '../wire/tls-certificate.ts'
import { directPathOf, fileIdIn } from './direct-path.ts'
import { hashed } from './media-cipher.ts'
import { type MediaFiles, ownerOf } from './media-files.ts'
import { parseRange } from './range.ts'
import { type Transit, transit } from './transit.ts'

const UPLOAD = /^\/mms\/(image|video|audio|document)\/([\w-]{43})$/
/** Above WhatsApp's limit for apps of other companies (100 MB), and below the limit for its own apps (2 GB). */
export const MAX_FILE_BYTES = 256 * 1024 * 1024
/** How long an answer to `media_conn` is valid, and how long its authorization. */
const TTL_S = 300
const AUTH_TTL_S = 21_600
const SECRET_BYTES = 32
/** Addresses on which a server listens, but which no client connects to. */
const EVERYWHERE: readonly string[] = ['0.0.0.0', '::']

interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  url: URL
}

class HttpError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** The uploaded bytes do not have the hash that the client stated. */
class WrongHash extends Error {}
/** The connection is to end without an answer. */
class Cut extends Error {}

export class MediaHost {
  readonly files: MediaFiles
  readonly #scenario: Scenario
  readonly #log: (line: string) => void
  readonly #server
  #secret = randomBytes(SECRET_BYTES)
  #hosts: string[] = []
  /** IDs of files that clients cannot download any more. Phones can. */
  readonly #expired = new Set<string>()

  constructor(files: MediaFiles, scenario: Scenario, certificate: TlsCertificate, log: (line: string) => void) {
    this.files = files
    this.#scenario = scenario
    this.#log = log
    this.#server = createServer(certificate, (request, response) => void this.#answer(request, response))
  }

  /** `host:port`, in the order that clients try them. */
  get hosts(): readonly string[] {
    return this.#hosts
  }

  async listen(port: number, host: string): Promise<void> {
    await listen(this.#server, port, host)
    const bound = (this.#server.address() as AddressInfo).port
    const primary = EVERYWHERE.includes(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
    this.#hosts = [primary, 'localhost'].map(name => `${name}:${bound}`)
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    if (this.#server.listening) await new Promise<void>(resolve => this.#server.close(() => resolve()))
    await this.files.close()
  }

  /** The answer to a client that asks for a media host. */
  connection(phone: string): Node {
    const attrs = { auth: this.#authorize(phone), ttl: `${TTL_S}`, auth_ttl: `${AUTH_TTL_S}`, max_buckets: '12' }
    const hosts = this.#hosts.map((hostname, index) =>
      node('host', {
        hostname,
        type: index === 0 ? 'primary' : 'fallback',
        maxContentLengthBytes: `${MAX_FILE_BYTES}`,
      }),
    )
    return node('media_conn', attrs, hosts)
  }

  /** From now on uploads need a new answer to `media_conn`. */
  expireAuthorizations(): void {
    this.#secret = randomBytes(SECRET_BYTES)
  }

  /**
   * From now on clients get 410 for the files that belong to this account. Phones keep their copies, and upload them again on
   * request.
   */
  async expireFilesOf(phone: string): Promise<void> {
    for (const id of await this.files.idsOf(phone)) this.#expired.add(id)
  }

  urlOf(directPath: string): string {
    return `https://${this.#hosts[0]}${directPath}`
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // The code that reads the request handles its errors. Without a listener, they would also be uncaught exceptions.
    request.on('error', () => undefined)
    try {
      const url = URL.parse(`https://localhost${request.url}`)
      if (!url) throw new HttpError(400, 'the path is malformed')
      const exchange = { request, response, url }
      if (request.method === 'GET') await this.#download(exchange)
      else if (request.method === 'POST' || request.method === 'PUT') await this.#upload(exchange)
      else throw new HttpError(405, 'this method is not supported')
    } catch (error) {
      this.#fail(request, response, error)
    }
  }

  #fail(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    if (error instanceof Cut || response.headersSent || request.errored) {
      response.destroy()
      return
    }
    if (!(error instanceof HttpError))
      this.#log(`media host: ${error instanceof Error ? error.message : String(error)}`)
    const [status, message] = error instanceof HttpError ? [error.status, error.message] : [500, 'internal error']
    // Reads what the client is still sending, so that it sees the answer.
    request.resume()
    sendJson(response, status, { error: { code: status, message } })
  }

  async #upload({ request, response, url }: Exchange): Promise<void> {
    const [, type, token] = UPLOAD.exec(url.pathname) ?? []
    if (!type || !token) throw new HttpError(404, 'there is no such upload')
    const phone = this.#phoneOf(url.searchParams.get('auth') ?? '')
    const fate = await this.#judge('upload', phone, { type })
    if (fate === 'unanswered') return
    if (phone === null) throw new HttpError(401, 'the authorization is unknown or has expired')
    if (url.searchParams.get('token') !== token) throw new HttpError(400, 'two tokens were given')
    const length = Number(request.headers['content-length'] ?? Number.NaN)
    if (Number.isNaN(length)) throw new HttpError(411, 'the length is required')
    if (length === 0) throw new HttpError(400, 'the file is empty')
    if (length > MAX_FILE_BYTES) throw new HttpError(413, `a file may be at most ${MAX_FILE_BYTES} bytes long`)
    const id = await this.files.create(phone, arriving(request, fate, length, token)).catch(error => {
      throw error instanceof WrongHash ? new HttpError(400, 'the token is not the SHA-256 of the file') : error
    })
    if (fate.cutAfter) throw new Cut()
    const directPath = directPathOf(id)
    sendJson(response, 200, { url: this.urlOf(directPath), direct_path: directPath })
  }

  async #download({ request, response, url }: Exchange): Promise<void> {
    const directPath = url.pathname + url.search
    const named = fileIdIn(directPath)
    const fate = await this.#judge('download', named && ownerOf(named.id), { path: directPath })
    if (fate === 'unanswered') return
    if (!named) throw new HttpError(404, 'there is no such file')
    if (!named.isSigned) throw new HttpError(403, 'the signature of the direct path is missing or wrong')
    if (this.#expired.has(named.id)) throw new HttpError(410, 'the file has expired')
    const file = await this.files.find(named.id)
    if (!file) throw new HttpError(404, 'there is no such file')
    const range = parseRange(request.headers.range, file.size)
    if (range === 'unsatisfiable') {
      await file.close()
      response.setHeader('content-range', `bytes */${file.size}`)
      throw new HttpError(416, 'there is no such range')
    }
    const { start, end } = range ?? { start: 0, end: file.size - 1 }
    const length = end - start + 1
    const headers = { 'content-type': 'application/octet-stream', 'accept-ranges': 'bytes', 'content-length': length }
    if (range) response.writeHead(206, { ...headers, 'content-range': `bytes ${start}-${end}/${file.size}` })
    else response.writeHead(200, headers)
    await pipeline(file.stream(start, end), bytes => transit(bytes, fate, length), response, { end: false })
    // Unlike `destroy`, it sends what was written.
    if (fate.isCut) response.socket?.destroySoon()
    else response.end()
  }

  /** Resolves once the request may continue. @throws HttpError if the scenario refuses it */
  async #judge(tag: 'upload' | 'download', phone: string | null, attrs: { type?: string; path?: string }) {
    if (!this.#scenario.isSet) return { garbled: false, isCut: false, cutAfter: false, bytesPerSecond: null }
    const fate: Fate = await this.#scenario.judgeRequest(node(tag, attrs), phone)
    if (fate.end === 'drop') return 'unanswered'
    if (typeof fate.end === 'object' && fate.end) throw new HttpError(statusIn(fate.end.error), 'simulated')
    const { garbled, cutAfter, bytesPerSecond } = fate
    return { garbled, isCut: fate.end === 'cut', cutAfter, bytesPerSecond }
  }

  #authorize(phone: string): string {
    const claim = `${phone}.${Math.floor(Date.now() / 1000) + AUTH_TTL_S}`
    return `${claim}.${this.#signatureOf(claim)}`
  }

  /** The account that an authorization was given to. Null if it is unknown or has expired. */
  #phoneOf(auth: string): string | null {
    const [phone = '', expiresAt = '', signature = ''] = auth.split('.')
    const [given, expected] = [Buffer.from(signature), Buffer.from(this.#signatureOf(`${phone}.${expiresAt}`))]
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null
    return Number(expiresAt) * 1000 > Date.now() ? phone : null
  }

  #signatureOf(claim: string): string {
    return createHmac('sha256', this.#secret).update(claim).digest('base64url')
  }
}

/** The HTTP status that a rule names; 500 if its `error` is the error of a stanza and not an HTTP status. */
function statusIn(error: string): number {
  const status = Number(error)
  return Number.isInteger(status) && status >= 300 && status <= 599 ? status : 500
}

/** The bytes of an upload. @throws after the last byte: WrongHash, or Cut if a rule cuts the upload */
async function* arriving(request: IncomingMessage, fate: Transit, length: number, token: string) {
  const hash = createHash('sha256')
  yield* hashed(transit(request, fate, length), hash)
  if (fate.isCut) throw new Cut()
  if (hash.digest('base64url') !== token) throw new WrongHash()
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}
