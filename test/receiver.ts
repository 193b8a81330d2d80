import { createHmac } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { until } from './until.ts'

/** What the receiver does with a request after its body has arrived. */
export type Answer =
  | { kind: 'status'; status: number; body?: string | Uint8Array; headers?: Record<string, string>; delayMs?: number }
  /** Never answers; the request stays open until the caller or `release` ends it. */
  | { kind: 'hang' }
  /** A status line, and then a byte of body every `everyMs`, without end. */
  | { kind: 'drip'; status: number; everyMs?: number }
  /** A status line, then this many bytes of body. */
  | { kind: 'huge'; status: number; bytes: number }
  /** The connection is reset, before any answer or within the body. */
  | { kind: 'reset'; after: 'request' | 'status'; status?: number }
  | { kind: 'redirect'; to: string; status?: number }
  /** Raw bytes, after which the connection is closed. */
  | { kind: 'raw'; text: string }

export interface ReceivedRequest {
  /** From 0, in the order of the requests' completion. */
  index: number
  method: string
  path: string
  headers: IncomingMessage['headers']
  body: Buffer
  /** `performance.now()` when the request was complete. */
  receivedAt: number
  /** `performance.now()` when the answer was out or the connection was gone; null before. */
  endedAt: number | null
  /** The port at the other end: the same for requests on one connection. */
  remotePort: number
}

/** The body of an event. */
export interface ReceivedEvent {
  event: string
  instanceId: string
  timestamp: string
  data: { id: string } & Record<string, unknown>
}

const OK: Answer = { kind: 'status', status: 200 }
const DRIP_EVERY_MS = 100
const CHUNK = Buffer.alloc(64 * 1024, 'x')

export function eventOf(request: ReceivedRequest): ReceivedEvent {
  return JSON.parse(request.body.toString('utf8'))
}

/** Whether X-Service-Signature was made with `secret`. */
export function isSigned(request: ReceivedRequest, secret: string): boolean {
  const expected = createHmac('sha256', secret).update(request.body).digest('hex')
  return request.headers['x-service-signature'] === `sha256=${expected}`
}

/** Whether the `standardwebhooks` library verifies that the request was signed with `secret`. */
export function isStandardSigned(request: ReceivedRequest, secret: string): boolean {
  try {
    new Webhook(secret).verify(request.body.toString('utf8'), request.headers as Record<string, string>)
    return true
  } catch {
    return false
  }
}

/** A consumer on loopback that records requests and answers as configured. */
export class Receiver {
  readonly requests: ReceivedRequest[] = []
  /** The most requests that were open at once. */
  mostOpen = 0
  /** The events of the first requests. Tests poll `events`, so each body is parsed once. */
  readonly #events: ReceivedEvent[] = []
  #open = 0
  #answer: (request: ReceivedRequest) => Answer = () => OK
  readonly #server: Server
  readonly #held = new Set<ServerResponse>()

  constructor() {
    this.#server = createServer((message, response) => this.#take(message, response))
  }

  async listen(port = 0): Promise<this> {
    await new Promise<void>(resolve => this.#server.listen(port, '127.0.0.1', resolve))
    return this
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`
  }

  get openNow(): number {
    return this.#open
  }

  get events(): ReceivedEvent[] {
    for (const request of this.requests.slice(this.#events.length)) this.#events.push(eventOf(request))
    return [...this.#events]
  }

  /** Sets the answer from now on. A function is called for every request. Requests that hang continue to hang. */
  answerWith(answer: Answer | ((request: ReceivedRequest) => Answer)): void {
    this.#answer = typeof answer === 'function' ? answer : () => answer
  }

  /** Answers whatever hangs. */
  release(status = 200): void {
    for (const response of this.#held) response.writeHead(status).end()
    this.#held.clear()
  }

  /** Waits for this many requests in all, or for a condition on them. */
  async waitFor(wanted: number | ((requests: ReceivedRequest[]) => boolean), withinMs?: number): Promise<this> {
    const isThere = typeof wanted === 'number' ? () => this.requests.length >= wanted : () => wanted(this.requests)
    await until(`the receiver's requests (${typeof wanted === 'number' ? wanted : 'condition'})`, isThere, withinMs)
    return this
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise(resolve => this.#server.close(resolve))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #take(message: IncomingMessage, response: ServerResponse): void {
    this.#open += 1
    this.mostOpen = Math.max(this.mostOpen, this.#open)
    const chunks: Buffer[] = []
    message.on('data', chunk => chunks.push(chunk)).on('error', () => {})
    let request: ReceivedRequest | undefined
    response
      .on('error', () => {})
      .on('close', () => {
        this.#open -= 1
        this.#held.delete(response)
        if (request) request.endedAt = performance.now()
      })
    message.on('end', () => {
      request = {
        index: this.requests.length,
        method: message.method ?? '',
        path: message.url ?? '',
        headers: message.headers,
        body: Buffer.concat(chunks),
        receivedAt: performance.now(),
        endedAt: null,
        remotePort: message.socket.remotePort ?? 0,
      }
      this.requests.push(request)
      this.#reply(this.#answer(request), response)
    })
  }

  #reply(answer: Answer, response: ServerResponse): void {
    switch (answer.kind) {
      case 'status': {
        const send = () => response.writeHead(answer.status, answer.headers).end(answer.body)
        if (answer.delayMs) setTimeout(send, answer.delayMs)
        else send()
        return
      }
      case 'hang':
        this.#held.add(response)
        return
      case 'drip': {
        response.writeHead(answer.status)
        const timer = setInterval(() => response.write('.'), answer.everyMs ?? DRIP_EVERY_MS)
        response.on('close', () => clearInterval(timer))
        return
      }
      case 'huge':
        response.writeHead(answer.status)
        writeMuch(response, answer.bytes)
        return
      case 'reset':
        if (answer.after === 'request') response.socket?.resetAndDestroy()
        else {
          response.writeHead(answer.status ?? 200, { 'content-length': '1000' })
          response.write('the beginning', () => response.socket?.resetAndDestroy())
        }
        return
      case 'redirect':
        response.writeHead(answer.status ?? 302, { location: answer.to }).end()
        return
      case 'raw':
        response.socket?.end(answer.text)
        return
    }
  }
}

/** Listening on a free port. */
export function createReceiver(): Promise<Receiver> {
  return new Receiver().listen()
}

function writeMuch(response: ServerResponse, bytes: number): void {
  let left = bytes
  const more = () => {
    while (left > 0 && !response.destroyed) {
      left -= CHUNK.length
      if (!response.write(CHUNK)) {
        response.once('drain', more)
        return
      }
    }
    response.end()
  }
  more()
}
