import { connect, type Socket } from 'node:net'

export interface PostRequest {
  path: string
  token: string
  body: { to: string; text: string }
}

interface CallerOptions {
  url: string
  expectedStatus: number
  /** Called when the connection opens, after every answer, and by `wake`. Null: the caller waits until it is woken. */
  next(): Buffer | null
  answered(latencyMs: number): void
  failed(error: Error): void
}

const HEAD_END = Buffer.from('\r\n\r\n')

/**
 * A connection that posts one request at a time. It uses a plain socket, because a full HTTP client would use as much
 * processor time as the server.
 */
export class Caller {
  readonly #options: CallerOptions
  readonly #expected: string
  readonly #socket: Socket
  #startedAt = 0
  #received: Buffer = Buffer.alloc(0)
  /** Connected, and without an unanswered request. */
  #isFree = false
  #closed = false

  constructor(options: CallerOptions) {
    const { url, expectedStatus, failed } = options
    const { hostname, port } = new URL(url)
    this.#options = options
    this.#expected = `HTTP/1.1 ${expectedStatus} `
    this.#socket = connect(Number(port), hostname, () => this.#post())
    this.#socket.setNoDelay(true)
    this.#socket.on('data', chunk => this.#receive(chunk))
    this.#socket.on('error', failed)
    this.#socket.on('close', () => this.#closed || failed(new Error('The server closed a connection.')))
  }

  wake(): void {
    if (this.#isFree && !this.#closed) this.#post()
  }

  close(): void {
    this.#closed = true
    this.#socket.destroy()
  }

  #post(): void {
    const request = this.#options.next()
    this.#isFree = request === null
    if (request === null) return
    this.#startedAt = performance.now()
    this.#socket.write(request)
  }

  #receive(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    const headEnd = this.#received.indexOf(HEAD_END)
    if (headEnd < 0) return
    const head = this.#received.toString('latin1', 0, headEnd)
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1])
    const end = headEnd + HEAD_END.length + length
    if (this.#received.length < end) return
    if (this.#received.length > end || !head.startsWith(this.#expected)) {
      this.#options.failed(new Error(`Unexpected answer: ${this.#received.toString('latin1')}`))
      return
    }
    this.#received = Buffer.alloc(0)
    this.#options.answered(performance.now() - this.#startedAt)
    this.#post()
  }
}

/** The bytes of a request to `url`. */
export function requestBytes(url: string, { path, token, body }: PostRequest): Buffer {
  const bytes = Buffer.from(JSON.stringify(body))
  const head = [
    `POST ${path} HTTP/1.1`,
    `Host: ${new URL(url).host}`,
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${bytes.length}`,
  ]
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), bytes])
}
