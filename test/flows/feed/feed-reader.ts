import { setTimeout as sleep } from 'node:timers/promises'
import { readServerSentEvents } from '../../../src/commands/listen/server-sent-events.ts'
import type { Random } from '../../rig/random.ts'
import type { FeedItem } from './feed-stream.ts'

export type ReaderKind = 'stream' | 'poll'

export interface FeedReaderOptions {
  token: string
  random: Random
  /** A node to read from; null while it is down. */
  url(): string | null
}

const AGAIN_MS = 100
const WAIT_SECONDS = 2

/** Reads the feed over connections that it ends at random, and continues with the cursor of the last event it has stored. */
export class FeedReader {
  readonly kind: ReaderKind
  readonly items: FeedItem[] = []
  disconnects = 0
  readonly #options: FeedReaderOptions
  readonly #counts = new Map<string, number>()
  #cursor: string | undefined
  #stopped = false
  #connection = new AbortController()

  constructor(kind: ReaderKind, options: FeedReaderOptions) {
    this.kind = kind
    this.#options = options
  }

  countOf(event: string): number {
    return this.#counts.get(event) ?? 0
  }

  stop(): void {
    this.#stopped = true
    this.#connection.abort()
  }

  /** Resolves after `stop`. @throws Error on an answer that no repetition changes */
  async run(): Promise<void> {
    const { random, url } = this.#options
    while (!this.#stopped) {
      const node = url()
      if (node === null) {
        await sleep(AGAIN_MS)
        continue
      }
      this.#connection = new AbortController()
      const killed = setTimeout(() => this.#connection.abort(), random.between(50, 3_000))
      try {
        await (this.kind === 'stream' ? this.#follow(node) : this.#poll(node))
      } catch (error) {
        if (error instanceof Unexpected) throw error
        this.disconnects += 1
      } finally {
        clearTimeout(killed)
      }
    }
  }

  async #follow(node: string): Promise<void> {
    const response = await this.#fetch(`${node}/v1/events/stream`, {
      ...(this.#cursor !== undefined && { 'last-event-id': this.#cursor }),
    })
    if (response === null) return
    for await (const { id, data } of readServerSentEvents(response.body!)) {
      if (data !== null) this.#store(JSON.parse(data))
      if (id !== null) this.#cursor = id
    }
    this.disconnects += 1
  }

  async #poll(node: string): Promise<void> {
    const query = new URLSearchParams({
      limit: String(this.#options.random.integer(1, 200)),
      wait: String(WAIT_SECONDS),
      ...(this.#cursor !== undefined && { after: this.#cursor }),
    })
    const response = await this.#fetch(`${node}/v1/events?${query}`)
    if (response === null) return
    const page = (await response.json()) as { data: FeedItem[]; nextCursor: string }
    for (const item of page.data) this.#store(item)
    this.#cursor = page.nextCursor
  }

  /** Null if the call is to be repeated after this answer. */
  async #fetch(url: string, headers: Record<string, string> = {}): Promise<Response | null> {
    const response = await fetch(url, {
      headers: { authorization: `Bearer ${this.#options.token}`, ...headers },
      signal: this.#connection.signal,
    })
    if (response.ok) return response
    const text = await response.text()
    if (response.status !== 503 && response.status !== 429) throw new Unexpected(`${response.status}: ${text}`)
    await sleep(AGAIN_MS)
    return null
  }

  #store(item: FeedItem): void {
    this.items.push(item)
    this.#counts.set(item.body.event, this.countOf(item.body.event) + 1)
  }
}

class Unexpected extends Error {
  override readonly name = 'Unexpected'
}
