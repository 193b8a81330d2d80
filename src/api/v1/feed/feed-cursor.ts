import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { EventKind } from '../../../domain/events/event.ts'
import { type FeedPlace, formatCursor, parseCursor, placeOf } from '../../../domain/events/feed-place.ts'
import type { InstanceId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { FeedEvent, FeedPage, FeedQuery } from '../../../store/events/events.ts'
import type { ApiContext } from '../../context.ts'
import { invalid } from '../../http/error-handler.ts'
import { parseBearer, tokenDigest } from '../../input.ts'

/** How often a reader polls, because hints may be lost. */
const POLL_MS = 3_000
/** The pause between a hint and the next read, because a busy instance causes many hints. */
const PAUSE_MS = 20
/** The cursor of a reader that wants only events recorded from now on. */
const LATEST = 'latest'

interface Start {
  after: ReturnType<typeof parseAfter>
  kind: EventKind | undefined
}

/** @throws Refusal unless `after` is absent, a cursor or `latest` */
export function parseAfter(field: string, after: string | undefined): FeedPlace | typeof LATEST | undefined {
  if (after === undefined || after === LATEST) return after
  const place = parseCursor(after)
  if (place === null) throw invalid(field, 'must be the cursor of an event, or "latest"')
  return place
}

export function cursorOf({ id, seq }: FeedEvent): string {
  return formatCursor(placeOf(seq, id))
}

/** The event as JSON. Its `body` contains the bytes that a webhook gets. */
export function toJson(event: FeedEvent): string {
  return `{"id":"${event.id}","cursor":"${cursorOf(event)}","body":${event.body}}`
}

/** One reader's place in the feed of its instance. Ends when the caller disconnects or the server begins to close. */
export class FeedCursor {
  readonly #context: ApiContext
  readonly #instanceId: InstanceId
  readonly #tokenDigest: string
  readonly #kind: EventKind | undefined
  readonly #ended = new AbortController()
  readonly #stops: (() => void)[]
  #news = Promise.withResolvers<void>()
  #position: FeedPlace | undefined

  private constructor(context: ApiContext, request: FastifyRequest, reply: FastifyReply, kind: EventKind | undefined) {
    this.#context = context
    this.#instanceId = request.instanceId
    this.#tokenDigest = tokenDigest(parseBearer(request.headers.authorization) ?? '')
    this.#kind = kind
    const wake = () => this.#news.resolve()
    const end = () => this.#end()
    const timer = setInterval(wake, context.settings.streamPollMs ?? POLL_MS)
    const { hints } = context.store
    this.#stops = [
      hints.on('log', wake, this.#instanceId),
      hints.on('access', wake, this.#instanceId),
      () => clearInterval(timer),
      () => context.closing.removeEventListener('abort', end),
    ]
    context.closing.addEventListener('abort', end)
    reply.raw.once('close', end)
    if (context.closing.aborted || reply.raw.closed) end()
  }

  static async open(
    context: ApiContext,
    request: FastifyRequest,
    reply: FastifyReply,
    { after, kind }: Start,
  ): Promise<FeedCursor> {
    const cursor = new FeedCursor(context, request, reply, kind)
    cursor.#position = after === LATEST ? await context.store.events.findFeedEnd(request.instanceId) : after
    return cursor
  }

  /** Aborted when the reader has disconnected or must be disconnected. */
  get ended(): AbortSignal {
    return this.#ended.signal
  }

  /** The cursor of the place up to which the feed was read. */
  get position(): string {
    return formatCursor(this.#position ?? placeOf(0, this.#instanceId))
  }

  /**
   * Reads the next page, and moves the cursor to its end.
   * @throws Refusal if the token or key is no longer valid, or the cursor has expired
   */
  async read(limits: Pick<FeedQuery, 'limit' | 'maxBytes'>): Promise<FeedPage> {
    // Created before the read, so a hint that arrives during the read is not missed.
    this.#news = Promise.withResolvers()
    const { admission, events } = this.#context.store
    const query = { ...limits, after: this.#position, kind: this.#kind }
    const page = await events.readFeed(this.#instanceId, query)
    if (!(await admission.isValid(this.#tokenDigest))) throw new Refusal('invalid_token')
    if (page === null) throw new Refusal('cursor_expired')
    this.#position = page.to
    return page
  }

  /** Resolves when the next page may have events or the time is over. Does not wait if `page` is not the last one. */
  async next(page: FeedPage, withinMs: number): Promise<void> {
    if (!page.isLast || this.#ended.signal.aborted) return setImmediate()
    const timer = setTimeout(() => this.#news.resolve(), withinMs)
    await this.#news.promise
    clearTimeout(timer)
    await sleep(PAUSE_MS)
  }

  #end(): void {
    for (const stop of this.#stops) stop()
    this.#ended.abort()
    this.#news.resolve()
  }
}
