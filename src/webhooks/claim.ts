import type { EndpointId, InstanceId } from '../domain/ids.ts'
import type { Clock } from '../kit/clock.ts'
import type { Deliveries, DueDelivery } from '../store/deliveries/deliveries.ts'
import type { ConsumerSpeed } from './concurrency-limit.ts'
import { FirstAttempts } from './first-attempts.ts'
import { Retries } from './retries.ts'

/** Concurrent attempts of one endpoint (contract §5). */
const MAX_CLAIMED = 8
/** Two of them are reserved for retries, and two for first attempts while any is pending. */
const MAX_OF_ONE_KIND = 6

const NEVER = Number.POSITIVE_INFINITY
const WHENEVER_DUE = Number.MAX_SAFE_INTEGER
const FROM_THE_START = { dueAt: -1, seq: -1 }

interface ClaimsOptions {
  instanceId: InstanceId
  endpointId: EndpointId
  deliveries: Pick<Deliveries, 'listFirst' | 'listRetries'>
  clock: Clock
  /** Smaller pages are read ahead unless the consumer is known to answer fast. */
  consumer: { readonly speed: ConsumerSpeed }
}

/** The outcome of a claim: the delivery's next attempt, `none`, or `unknown` when only the database knows. */
export type NextAttempt = DueDelivery | 'none' | 'unknown'

/**
 * The deliveries of one endpoint that can be claimed, and those that are. A claim exists in memory only: the row does not
 * change before the attempt is recorded, and after a crash every claimed delivery can be claimed again.
 */
export class Claims {
  readonly #options: ClaimsOptions
  readonly #firsts = new FirstAttempts()
  readonly #retries = new Retries()
  readonly #claimed = new Set<string>()
  #claimedFirsts = 0
  #isReading = false
  /** Released since the current read began. The page may show these rows as they were before. */
  readonly #releasedWhileReading = new Set<string>()

  constructor(options: ClaimsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#claimed.size
  }

  /**
   * The delivery to claim next: the earliest due retry, otherwise the first attempt of the earliest event.
   * @param staleAllowed whether first attempts may start although earlier ones may have become ready meanwhile
   */
  peek(now: number, staleAllowed: boolean): DueDelivery | undefined {
    const retry = this.#mayClaim('retry') ? this.#retries.peek() : undefined
    if (retry !== undefined && retry.dueAt <= now) return retry
    return (staleAllowed || !this.#firsts.stale) && this.#mayClaim('first') ? this.#firsts.peek() : undefined
  }

  claim(delivery: DueDelivery): void {
    if (this.#retries.peek() === delivery) this.#retries.shift()
    else if (this.#firsts.peek() === delivery) this.#firsts.shift()
    this.#claimed.add(delivery.id)
    if (isFirst(delivery)) this.#claimedFirsts += 1
  }

  release(delivery: DueDelivery, next: NextAttempt): void {
    this.#claimed.delete(delivery.id)
    if (isFirst(delivery)) this.#claimedFirsts -= 1
    if (this.#isReading) this.#releasedWhileReading.add(delivery.id)
    if (next === 'unknown') {
      if (isFirst(delivery)) this.#firsts.invalidate()
      this.#retries.invalidate()
    } else if (next !== 'none') this.#retries.add(next, this.#options.clock.steady())
  }

  #mayClaim(kind: 'first' | 'retry'): boolean {
    if (this.#claimed.size >= MAX_CLAIMED) return false
    if (kind === 'first') return this.#claimedFirsts < MAX_OF_ONE_KIND
    const mayFirstsWait = this.#firsts.stale || this.#firsts.peek() !== undefined
    if (!mayFirstsWait || this.#claimedFirsts >= MAX_OF_ONE_KIND) return true
    return this.#claimed.size - this.#claimedFirsts < MAX_OF_ONE_KIND
  }

  // ── Reading ahead ───────────────────────────────────────────────────────────────────────────────────────────────

  /** New first attempts may be ready in the database. */
  invalidate(): void {
    this.#firsts.invalidate()
  }

  /** Reads everything again. */
  forget(): void {
    this.#firsts.forget()
    this.#retries.invalidate()
  }

  /** A person may have requested retries. */
  invalidateRetries(): void {
    this.#retries.invalidate()
  }

  shouldRead(now: number): boolean {
    return !this.#isReading && this.#nextPage(now) !== null
  }

  /** The next time after `now` at which a retry becomes due or must be read; Infinity if there is none. */
  nextWakeAt(now: number): number {
    const readAt = this.#isReading ? NEVER : this.#retries.readAt
    const dueAt = this.#retries.peek()?.dueAt ?? NEVER
    return Math.min(readAt > now ? readAt : NEVER, dueAt > now ? dueAt : NEVER)
  }

  /**
   * Reads pages until enough deliveries are in memory. @param onPage called after each page; returns false to stop
   * @throws StoreUnavailable
   */
  async readAhead(onPage: () => boolean): Promise<void> {
    this.#isReading = true
    try {
      for (let page = this.#nextPage(); page !== null; page = this.#nextPage()) {
        this.#releasedWhileReading.clear()
        if (page === 'retries') await this.#readRetries()
        else await this.#readFirsts()
        if (!onPage()) return
      }
    } finally {
      this.#isReading = false
    }
  }

  #nextPage(now = this.#options.clock.steady()): 'retries' | 'firsts' | null {
    if (this.#retries.readAt <= now) return 'retries'
    if (this.#firsts.stale ? this.#mayClaim('first') : this.#firsts.runsLow(this.#options.consumer.speed))
      return 'firsts'
    return null
  }

  async #readFirsts(): Promise<void> {
    const { deliveries, instanceId, endpointId, consumer } = this.#options
    const query = this.#firsts.beginRead(this.#claimedFirsts, consumer.speed)
    try {
      const page = await deliveries.listFirst(instanceId, query.afterSeq, query.limit, endpointId)
      this.#firsts.endRead(query, page, new Set([...this.#claimed, ...this.#releasedWhileReading]))
    } catch (error) {
      this.#firsts.failRead()
      throw error
    }
  }

  async #readRetries(): Promise<void> {
    const { deliveries, instanceId, endpointId, clock } = this.#options
    const limit = this.#retries.beginRead(this.#claimed.size - this.#claimedFirsts)
    try {
      const page = await deliveries.listRetries(instanceId, FROM_THE_START, WHENEVER_DUE, limit, endpointId)
      this.#retries.endRead(limit, page, new Set([...this.#claimed, ...this.#releasedWhileReading]), clock.steady())
    } catch (error) {
      this.#retries.invalidate()
      throw error
    }
  }
}

function isFirst({ attemptNumber }: DueDelivery): boolean {
  return attemptNumber === 1
}
