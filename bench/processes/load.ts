/**
 * Posts the next request as soon as the last one is answered, on each connection. Uses plain sockets, because a full HTTP
 * client would use as much processor time as the server.
 */
import { connect, type Socket } from 'node:net'
import { serve } from '../harness/remote.ts'
import { quantile } from '../harness/statistics.ts'

export interface Target {
  url: string
  /** One connection each; the same bytes are posted repeatedly. */
  requests: { path: string; token: string; body: object }[]
  expectedStatus: number
}

export interface TimedLoad extends Target {
  /** Not measured. */
  warmUpMs: number
  durationMs: number
}

export interface LoadResult {
  perSecond: number
  /** The latency of a request. The load's duration if no request was answered. */
  medianMs: number
  p99Ms: number
}

const HEAD_END = Buffer.from('\r\n\r\n')

class Caller {
  readonly #mayPost: () => boolean
  readonly #answered: (latencyMs: number) => void
  readonly #request: Buffer
  readonly #expected: string
  readonly #fail: (error: Error) => void
  readonly #socket: Socket
  #startedAt = 0
  #received: Buffer = Buffer.alloc(0)
  #closed = false

  /** @param mayPost asked before every request */
  constructor(
    target: Target,
    index: number,
    mayPost: () => boolean,
    answered: (latencyMs: number) => void,
    fail: (error: Error) => void,
  ) {
    const { hostname, port, host } = new URL(target.url)
    const { path, token, body } = target.requests[index]!
    const bytes = Buffer.from(JSON.stringify(body))
    const head = [
      `POST ${path} HTTP/1.1`,
      `Host: ${host}`,
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      `Content-Length: ${bytes.length}`,
    ]
    this.#request = Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), bytes])
    this.#expected = `HTTP/1.1 ${target.expectedStatus} `
    this.#mayPost = mayPost
    this.#answered = answered
    this.#fail = fail
    this.#socket = connect(Number(port), hostname, () => this.#post())
    this.#socket.setNoDelay(true)
    this.#socket.on('data', chunk => this.#receive(chunk))
    this.#socket.on('error', fail)
    this.#socket.on('close', () => this.#closed || fail(new Error('The server closed a connection.')))
  }

  close(): void {
    this.#closed = true
    this.#socket.destroy()
  }

  #post(): void {
    if (!this.#mayPost()) return
    this.#startedAt = performance.now()
    this.#socket.write(this.#request)
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
      this.#fail(new Error(`Unexpected answer: ${this.#received.toString('latin1')}`))
      return
    }
    this.#received = Buffer.alloc(0)
    this.#answered(performance.now() - this.#startedAt)
    this.#post()
  }
}

async function run(load: TimedLoad): Promise<LoadResult> {
  const latencies: number[] = []
  const failed = Promise.withResolvers<never>()
  const pass = (ms: number) => Promise.race([new Promise(resolve => setTimeout(resolve, ms)), failed.promise])
  const always = () => true
  const callers = load.requests.map(
    (_, index) => new Caller(load, index, always, latencyMs => latencies.push(latencyMs), failed.reject),
  )
  try {
    await pass(load.warmUpMs)
    latencies.length = 0
    const startedAt = performance.now()
    await pass(load.durationMs)
    const seconds = (performance.now() - startedAt) / 1000
    if (latencies.length === 0) return { perSecond: 0, medianMs: load.durationMs, p99Ms: load.durationMs }
    return {
      perSecond: latencies.length / seconds,
      medianMs: quantile(latencies, 0.5),
      p99Ms: quantile(latencies, 0.99),
    }
  } finally {
    for (const caller of callers) caller.close()
  }
}

async function post({ count, ...target }: Target & { count: number }): Promise<void> {
  const done = Promise.withResolvers<void>()
  let posted = 0
  let answered = 0
  const mayPost = () => posted++ < count
  const onAnswer = () => {
    answered += 1
    if (answered === count) done.resolve()
  }
  const callers = target.requests.map((_, index) => new Caller(target, index, mayPost, onAnswer, done.reject))
  try {
    await done.promise
  } finally {
    for (const caller of callers) caller.close()
  }
}

const methods = { run, post }
export type LoadProcess = typeof methods
serve(methods)
