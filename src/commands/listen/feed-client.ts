import { readServerSentEvents } from './server-sent-events.ts'

/** The service sends a comment after 15 s of silence. */
const SILENT_MS = 40_000

export interface FeedItem {
  id: string
  cursor: string
  body: { event: string }
}

/** The answer to a call was not a success. */
export class CallFailed extends Error {
  override readonly name = 'CallFailed'
  readonly status: number
  /** Seconds; null if the answer has no such number. A proxy may send a date instead. */
  readonly retryAfter: number | null

  constructor(path: string, status: number, retryAfter: string | null, text: string) {
    super(`${path} answered ${status}: ${text}`)
    this.status = status
    const seconds = Number(retryAfter)
    this.retryAfter = seconds > 0 && Number.isFinite(seconds) ? seconds : null
  }
}

/** The API calls that the listener makes with an instance's token. */
export class FeedClient {
  readonly #server: URL
  readonly #token: string
  readonly #signal: AbortSignal

  constructor(server: URL, token: string, signal: AbortSignal) {
    this.#server = server
    this.#token = token
    this.#signal = signal
  }

  /** @throws CallFailed */
  async findInstance(): Promise<{ id: string; name: string }> {
    return this.#read('/v1/instance')
  }

  /** The secret of the instance's webhook. @throws CallFailed */
  async findSecret(instanceId: string): Promise<string> {
    return (await this.#read<{ secret: string }>(`/v1/webhooks/${instanceId}`)).secret
  }

  /**
   * Follows the events after a cursor, or all that are kept if `after` is empty. Ends when the connection ends.
   * @yields a cursor with its event, or with null if the cursor has no event
   * @throws CallFailed
   */
  async *follow(after: string, event: string | undefined): AsyncGenerator<{ cursor: string; item: FeedItem | null }> {
    const query = new URLSearchParams({ ...(after !== '' && { after }), ...(event !== undefined && { event }) })
    const silence = new AbortController()
    const response = await this.#call(`/v1/events/stream?${query}`, silence.signal)
    const listen = () => setTimeout(() => silence.abort(), SILENT_MS)
    let timer = listen()
    try {
      for await (const { id, data } of readServerSentEvents(response.body!)) {
        clearTimeout(timer)
        if (id !== null) yield { cursor: id, item: data === null ? null : JSON.parse(data) }
        timer = listen()
      }
    } finally {
      clearTimeout(timer)
      silence.abort()
    }
  }

  async #read<T>(path: string): Promise<T> {
    const response = await this.#call(path)
    return ((await response.json()) as { data: T }).data
  }

  async #call(path: string, ...signals: AbortSignal[]): Promise<Response> {
    const response = await fetch(new URL(path, this.#server), {
      headers: { authorization: `Bearer ${this.#token}` },
      signal: AbortSignal.any([this.#signal, ...signals]),
    })
    if (response.ok) return response
    const text = (await response.text()).slice(0, 300)
    throw new CallFailed(path.split('?')[0]!, response.status, response.headers.get('retry-after'), text)
  }
}
