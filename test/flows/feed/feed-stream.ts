import { readServerSentEvents } from '../../../src/commands/listen/server-sent-events.ts'

export interface FeedItem {
  id: string
  cursor: string
  body: { event: string; instanceId: string; timestamp: string; data: Record<string, unknown> }
}

/** Reads the stream of one instance's events as they come. */
export class FeedStream {
  readonly items: FeedItem[] = []
  /** The last cursor, with an event or without one. */
  lastEventId: string | undefined
  readonly response: Response
  ended = false
  readonly #abort: AbortController

  private constructor(response: Response, abort: AbortController) {
    this.response = response
    this.#abort = abort
    void this.#read()
      .catch(() => undefined)
      .finally(() => {
        this.ended = true
      })
  }

  /** @param lastEventId where an earlier stream ended */
  static async open(url: string, token: string, { query = '', lastEventId = '' } = {}): Promise<FeedStream> {
    const abort = new AbortController()
    const response = await fetch(`${url}/v1/events/stream${query}`, {
      headers: { authorization: `Bearer ${token}`, ...(lastEventId && { 'last-event-id': lastEventId }) },
      signal: abort.signal,
    })
    return new FeedStream(response, abort)
  }

  async #read(): Promise<void> {
    for await (const { id, data } of readServerSentEvents(this.response.body!)) {
      if (data !== null) this.items.push(JSON.parse(data))
      if (id !== null) this.lastEventId = id
    }
  }

  leave(): void {
    this.#abort.abort()
  }
}
