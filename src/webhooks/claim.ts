import type { EndpointId, InstanceId } from '../domain/ids.ts'
import { CLOCK_TOLERANCE_MS, type Clock } from '../kit/clock.ts'
import type { Deliveries, DueDelivery } from '../store/deliveries/deliveries.ts'
import type { ConsumerSpeed } from './concurrency-limit.ts'

/** Concurrent attempts of one endpoint (contract §5). */
const MAX_CLAIMED = 8
/** Two of them are reserved for retries, and two for first attempts while any first attempt is pending. */
const MAX_OF_ONE_KIND = 6

/** Small, because the deliveries of a consumer that hangs stay in memory for a long time. */
const SMALL = { page: 8, low: 1 }
/** `page`: rows in one read, in addition to those in flight. `low`: with fewer in memory, the next page is read. */
const PAGES: Record<ConsumerSpeed, { page: number; low: number }> = {
  unknown: SMALL,
  slow: SMALL,
  fast: { page: 32, low: 8 },
}

/** Retries due later than this are not kept in memory. */
const READ_AHEAD_MS = 5_000
/** How long before its due time the next unread retry is read. Shorter than the usual first delay, so that one read serves many. */
const LEAD_MS = 500

const NEVER = Number.POSITIVE_INFINITY
const AT_ONCE = Number.NEGATIVE_INFINITY

interface ClaimsOptions {
  instanceId: InstanceId
  endpointId: EndpointId
  deliveries: Pick<Deliveries, 'listFirst' | 'listRetries'>
  clock: Clock
  /** Smaller pages are read ahead unless the consumer is known to answer fast. */
  consumer: { readonly speed: ConsumerSpeed }
}

/** What follows an attempt: a retry at this time on the steady clock, `none`, or `unknown` when only the database knows. */
export type NextAttempt = number | 'none' | 'unknown'

/** The kind of deliveries in one page. */
export type PageKind = 'retries' | 'firsts'

/**
 * The claimable and the claimed deliveries of one endpoint. A claim exists in memory only: the row does not change
 * before the attempt is recorded, and after a crash every claimed delivery can be claimed again.
 *
 * About one page of first attempts is in memory, in the order of the events. After a hint the next read starts from the first
 * row, because the announced delivery may come before those in memory: it was blocked until now, or its commit became visible
 * late. Retries are read shortly before they are due, always from the earliest. Every retry in memory is due before every
 * unread one, so the earliest starts first. Only a requested retry may start later than retries in memory.
 */
export class Claims {
  readonly #options: ClaimsOptions
  readonly #openedAt: number
  readonly #claimed = new Set<number>()
  #claimedFirsts = 0
  #firsts: DueDelivery[] = []
  /** True if an earlier first attempt than those in memory may be ready. */
  #areFirstsStale = true
  /** True if first attempts were invalidated since the current read began. */
  #areFirstsStaleAgain = false
  /** The last `seq` read since the first attempts were last read from the beginning. */
  #readUpTo = 0
  #mayHaveMoreFirsts = true
  #retries: DueDelivery[] = []
  #areRetriesStale = true
  /** No unread retry is due before this time, unless the retries are stale. */
  #unreadFrom = NEVER
  #isReading = false
  #lastPage: PageKind = 'firsts'
  /** True if the page that is being read must not be used. */
  #isForgotten = false
  /** Claimed at any time since the current read began. The page may show these rows as they were before. */
  #claimedWhileReading = new Set<number>()

  constructor(options: ClaimsOptions) {
    this.#options = options
    this.#openedAt = options.clock.steady()
  }

  /**
   * The delivery to claim next: the earliest due retry, otherwise the first attempt of the earliest event.
   * @param staleAllowed whether first attempts may start although earlier ones may have become ready meanwhile
   */
  peek(now: number, staleAllowed: boolean): DueDelivery | undefined {
    const retry = this.#mayClaim('retry') ? this.#retries[0] : undefined
    if (retry !== undefined && retry.dueAt <= now) return retry
    return (staleAllowed || !this.#areFirstsStale) && this.#mayClaim('first') ? this.#firsts[0] : undefined
  }

  claim(delivery: DueDelivery): void {
    if (this.#retries[0] === delivery) this.#retries.shift()
    else if (this.#firsts[0] === delivery) this.#firsts.shift()
    this.#claimed.add(delivery.seq)
    if (this.#isReading) this.#claimedWhileReading.add(delivery.seq)
    if (delivery.attemptNumber === 1) this.#claimedFirsts += 1
  }

  release(delivery: DueDelivery, next: NextAttempt): void {
    this.#claimed.delete(delivery.seq)
    if (delivery.attemptNumber === 1) this.#claimedFirsts -= 1
    if (next === 'unknown') this.forget()
    else if (next !== 'none') this.#noteUnread(next)
  }

  #mayClaim(kind: 'first' | 'retry'): boolean {
    if (this.#claimed.size >= MAX_CLAIMED) return false
    if (kind === 'first') return this.#claimedFirsts < MAX_OF_ONE_KIND
    const firstsMayBeWaiting = this.#areFirstsStale || this.#mayHaveMoreFirsts || this.#firsts.length > 0
    if (!firstsMayBeWaiting || this.#claimedFirsts >= MAX_OF_ONE_KIND) return true
    return this.#claimed.size - this.#claimedFirsts < MAX_OF_ONE_KIND
  }

  // ── Reading ahead ───────────────────────────────────────────────────────────────────────────────────────────────

  /** New first attempts may be ready in the database. */
  invalidateFirsts(): void {
    this.#areFirstsStale = true
    this.#areFirstsStaleAgain = true
  }

  /** Discards what is in memory, so that everything is read again: an attempt was not made, and none may overtake it. */
  forget(): void {
    this.#firsts = []
    this.#retries = []
    this.#isForgotten = true
    this.invalidateFirsts()
    this.invalidateRetries()
  }

  /** Retries may have been requested. */
  invalidateRetries(): void {
    this.#areRetriesStale = true
  }

  /** A retry that is not in memory may be due at this time. Later ones must not start before it is read. */
  #noteUnread(dueAt: number): void {
    this.#unreadFrom = Math.min(this.#unreadFrom, dueAt)
    this.#retries = this.#retries.filter(retry => retry.dueAt <= this.#unreadFrom)
  }

  /** The next time after `now` at which a retry becomes due or must be read; Infinity if there is none. */
  nextWakeAt(now: number): number {
    const readAt = this.#isReading ? NEVER : this.#readRetriesAt
    const dueAt = this.#retries[0]?.dueAt ?? NEVER
    return Math.min(readAt > now ? readAt : NEVER, dueAt > now ? dueAt : NEVER)
  }

  /**
   * The page to read next; null if enough is in memory or a page is being read. If both kinds are wanted, they are read in
   * turn, so that a stream of hints cannot keep one kind from being read.
   */
  nextPage(now: number): PageKind | null {
    if (this.#isReading) return null
    const readsRetries = this.#readRetriesAt <= now && this.#mayClaim('retry')
    const runsLow = this.#mayHaveMoreFirsts && this.#firsts.length < PAGES[this.#options.consumer.speed].low
    const readsFirsts = this.#areFirstsStale ? this.#mayClaim('first') : runsLow
    if (readsRetries && !(readsFirsts && this.#lastPage === 'retries')) return 'retries'
    return readsFirsts ? 'firsts' : null
  }

  /** @throws StoreUnavailable */
  async read(page: PageKind): Promise<void> {
    this.#isReading = true
    this.#lastPage = page
    this.#isForgotten = false
    this.#areFirstsStaleAgain = false
    this.#claimedWhileReading = new Set(this.#claimed)
    try {
      if (page === 'retries') await this.#readRetries()
      else await this.#readFirsts()
    } finally {
      this.#isReading = false
    }
  }

  get #readRetriesAt(): number {
    if (this.#areRetriesStale) return AT_ONCE
    return this.#retries.length < PAGES[this.#options.consumer.speed].low ? this.#unreadFrom - LEAD_MS : NEVER
  }

  async #readFirsts(): Promise<void> {
    const { deliveries, instanceId, endpointId, consumer } = this.#options
    const afterSeq = this.#areFirstsStale ? 0 : this.#readUpTo
    const limit = PAGES[consumer.speed].page + this.#claimedFirsts
    const page = await deliveries.listFirst(instanceId, afterSeq, limit, endpointId)
    if (this.#isForgotten) return
    if (afterSeq === 0) this.#firsts = []
    this.#firsts.push(...page.filter(({ seq }) => !this.#claimedWhileReading.has(seq)))
    this.#areFirstsStale = this.#areFirstsStaleAgain
    this.#mayHaveMoreFirsts = page.length === limit
    this.#readUpTo = page.at(-1)?.seq ?? afterSeq
  }

  async #readRetries(): Promise<void> {
    const { deliveries, instanceId, endpointId, clock, consumer } = this.#options
    const limit = PAGES[consumer.speed].page + this.#claimed.size - this.#claimedFirsts
    this.#areRetriesStale = false
    this.#unreadFrom = NEVER
    try {
      const page = await deliveries.listRetries(instanceId, limit, endpointId)
      if (this.#isForgotten) return
      const now = clock.steady()
      const retries = page
        .map(retry => withoutClockSkew(retry, now, this.#openedAt))
        .sort((a, b) => a.dueAt - b.dueAt || a.seq - b.seq)
      const later = retries.find(({ dueAt }) => dueAt > now + READ_AHEAD_MS)
      const unread = later ?? (page.length === limit ? retries.at(-1) : undefined)
      this.#retries = retries.filter(
        ({ seq, dueAt }) => dueAt <= now + READ_AHEAD_MS && !this.#claimedWhileReading.has(seq),
      )
      this.#noteUnread(unread?.dueAt ?? NEVER)
    } catch (error) {
      this.invalidateRetries()
      throw error
    }
  }
}

/**
 * A requested attempt is due at once, even if the clock of the node that took the request is ahead. If an attempt seems to have
 * failed in the future, it was recorded before this lane was opened, by a clock that was ahead. The delay of its retry is then
 * counted from when the lane was opened.
 */
function withoutClockSkew(row: DueDelivery, now: number, openedAt: number): DueDelivery {
  const { failedAt, dueAt, requested } = row
  if (requested !== null) return { ...row, dueAt: Math.min(dueAt, now) }
  if (failedAt === null || failedAt <= now + CLOCK_TOLERANCE_MS) return row
  return { ...row, dueAt: Math.min(dueAt, openedAt + Math.max(0, dueAt - failedAt)) }
}
