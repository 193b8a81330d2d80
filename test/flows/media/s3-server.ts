import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** S3 refuses a smaller part, unless it is the last one. */
const LEAST_PART_BYTES = 5 * 1_048_576

/**
 * The part of S3 that the service uses, in memory. It checks the ETags, order and sizes of parts. Not checked: signatures and
 * checksums, virtual hosts, regions, versions, storage classes, lists of several pages, and consistency in a cluster.
 */
export class S3Server {
  readonly objects = new Map<string, Buffer>()
  /** Multipart uploads that were neither completed nor aborted. */
  readonly uploads = new Map<string, { key: string; parts: Map<number, Buffer> }>()
  /** Makes requests fail: the method and path, with the query. */
  fails: (request: string) => boolean = () => false
  /** Whether it lists uploads. Not every service does. */
  listsUploads = true
  /** It closes every connection. */
  isAway = false
  /** It accepts a request and answers nothing, or only the first bytes of the body. */
  silentFrom: 'request' | 'body' | null = null
  readonly #server: Server
  #count = 0

  constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response))
  }

  async listen(): Promise<this> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening')
    return this
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise(resolve => this.#server.close(resolve))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.isAway) {
      request.socket.destroy()
      return
    }
    const { pathname, searchParams } = new URL(request.url!, this.url)
    const body = await bodyOf(request).catch(() => null)
    if (body === null) return
    const {
      status,
      headers = {},
      content = '',
    } = this.fails(`${request.method} ${request.url}`)
      ? refuse(403, 'AccessDenied')
      : this.#handle(request, decodeURIComponent(pathname.slice(1)), searchParams, body)
    if (this.silentFrom === 'request') return
    response.writeHead(status, { 'content-type': 'application/xml', 'content-length': content.length, ...headers })
    if (this.silentFrom === 'body') response.write(content.slice(0, 10))
    else response.end(content)
  }

  #handle(request: IncomingMessage, path: string, query: URLSearchParams, body: Buffer): S3Answer {
    const upload = this.uploads.get(query.get('uploadId') ?? '')
    const kind = `${request.method}${query.has('uploads') ? ' uploads' : query.has('uploadId') ? ' upload' : ''}`
    switch (kind) {
      case 'POST uploads': {
        this.#count += 1
        const id = `upload-${this.#count}`
        this.uploads.set(id, { key: path, parts: new Map() })
        return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`)
      }
      case 'GET uploads': {
        if (!this.listsUploads) return refuse(501, 'NotImplemented')
        const prefix = `${path.replace(/\/$/, '')}/${query.get('prefix') ?? ''}`
        const found = [...this.uploads].filter(([, { key }]) => key.startsWith(prefix))
        const items = found.map(([id, { key }]) => `<Upload><Key>${key}</Key><UploadId>${id}</UploadId></Upload>`)
        return xml(`<ListMultipartUploadsResult>${items.join('')}</ListMultipartUploadsResult>`)
      }
      case 'PUT upload':
        if (upload === undefined) return refuse(404, 'NoSuchUpload')
        upload.parts.set(Number(query.get('partNumber')), body)
        return { status: 200, headers: { etag: etagOf(body) } }
      case 'POST upload': {
        if (upload === undefined) return refuse(404, 'NoSuchUpload')
        const parts = completeParts(upload.parts, body.toString())
        if (typeof parts === 'string') return refuse(400, parts)
        this.objects.set(upload.key, Buffer.concat(parts))
        this.uploads.delete(query.get('uploadId')!)
        return xml(`<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>`)
      }
      case 'DELETE upload':
        return this.uploads.delete(query.get('uploadId')!) ? { status: 204 } : refuse(404, 'NoSuchUpload')
      case 'PUT':
        this.objects.set(path, body)
        return { status: 200, headers: { etag: '"x"' } }
      case 'DELETE':
        this.objects.delete(path)
        return { status: 204 }
      default:
        return this.#get(path, request.headers.range)
    }
  }

  #get(path: string, header = ''): S3Answer {
    const object = this.objects.get(path)
    if (object === undefined) return refuse(404, 'NoSuchKey')
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(header) ?? []
    if (from === undefined) return { status: 200, content: object }
    return { status: 206, content: object.subarray(Number(from), Number(to) + 1) }
  }
}

function etagOf(bytes: Buffer): string {
  return `"${createHash('md5').update(bytes).digest('hex')}"`
}

/** @param body names the parts in their order, with their ETags. @returns the parts, or why they are refused */
function completeParts(stored: ReadonlyMap<number, Buffer>, body: string): Buffer[] | string {
  const items = [...body.matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, item = '']) => ({
    number: Number(/<PartNumber>(\d+)</.exec(item)?.[1]),
    etag: /<ETag>(.*?)</.exec(item)?.[1]?.replaceAll('&quot;', '"'),
  }))
  if (items.length === 0) return 'MalformedXML'
  const parts: Buffer[] = []
  for (const [n, { number, etag }] of items.entries()) {
    if (n > 0 && number <= items[n - 1]!.number) return 'InvalidPartOrder'
    const part = stored.get(number)
    if (part === undefined || etagOf(part) !== etag) return 'InvalidPart'
    if (n < items.length - 1 && part.length < LEAST_PART_BYTES) return 'EntityTooSmall'
    parts.push(part)
  }
  return parts
}

interface S3Answer {
  status: number
  headers?: Record<string, string>
  content?: string | Buffer
}

function xml(content: string): S3Answer {
  return { status: 200, content: `<?xml version="1.0"?>${content}` }
}

function refuse(status: number, code: string): S3Answer {
  return { status, content: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>` }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part)
  const body = Buffer.concat(parts)
  return request.headers['content-encoding'] === 'aws-chunked' ? withoutChunks(body) : body
}

/** `aws-chunked`: a length in hexadecimal before each chunk, and trailers at the end. */
function withoutChunks(body: Buffer): Buffer {
  const chunks: Buffer[] = []
  for (let from = 0; ; ) {
    const lineEnd = body.indexOf('\r\n', from)
    const length = Number.parseInt(body.subarray(from, lineEnd).toString(), 16)
    if (!(length > 0)) return Buffer.concat(chunks)
    chunks.push(body.subarray(lineEnd + 2, lineEnd + 2 + length))
    from = lineEnd + 2 + length + 2
  }
}
