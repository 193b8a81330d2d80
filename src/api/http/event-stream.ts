import { Readable } from 'node:stream'

const HEARTBEAT_MS = 15_000
/** The limit of unread bytes. Beyond it nothing is added until the reader catches up. */
const MAX_WAITING_BYTES = 65_536

/** Server-sent events (WHATWG HTML §9.2) to one reader, until the reader disconnects or the server begins to close. */
export class EventStream {
  /** The body of the answer. */
  readonly body = new Readable({ read() {} })
  readonly #heartbeat: NodeJS.Timeout
  #hasEnded = false

  constructor(closing: AbortSignal) {
    const end = () => this.end()
    this.#heartbeat = setInterval(() => this.#push(':\n\n'), HEARTBEAT_MS)
    closing.addEventListener('abort', end)
    this.onEnd(() => {
      clearInterval(this.#heartbeat)
      closing.removeEventListener('abort', end)
    })
    if (closing.aborted) this.end()
  }

  get ended(): boolean {
    return this.#hasEnded || this.body.destroyed
  }

  /** @returns false if nothing was sent, because the stream has ended or the reader is too slow */
  send(event: string, data: unknown): boolean {
    return this.#push(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  }

  end(): void {
    if (this.ended) return
    this.#hasEnded = true
    this.body.push(null)
  }

  onEnd(callback: () => void): void {
    this.body.once('close', callback)
  }

  #push(text: string): boolean {
    if (this.ended || this.body.readableLength > MAX_WAITING_BYTES) return false
    this.body.push(text)
    return true
  }
}
