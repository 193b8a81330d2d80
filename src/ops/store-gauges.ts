import { Gauge, type Registry } from 'prom-client'
import { withDeadline } from '../kit/deadline.ts'
import type { StoreTotals } from '../store/statistics/statistics.ts'

/** However often it is scraped, the store is asked at most once in this time. */
const KEPT_MS = 5_000
/** A store that hangs must not keep the rest from being told. */
const ASK_WITHIN_MS = 3_000

export interface StoreSources {
  /** What is in the store. */
  totals(): Promise<StoreTotals>
  /** Rejects unless the store can write. */
  ping(): Promise<void>
}

/** What is in the store, as of the last time it was asked. Every node tells the same. */
export class StoreGauges {
  readonly #up: Gauge
  readonly #queued: Gauge
  readonly #oldestQueued: Gauge
  readonly #waiting: Gauge
  readonly #oldestDue: Gauge
  readonly #connections: Gauge
  readonly #unowned: Gauge
  readonly #bytes: Gauge
  readonly #now: () => number
  #askedAt = Number.NEGATIVE_INFINITY
  #refreshing: Promise<void> | null = null

  /** @param now milliseconds on a clock that never jumps */
  constructor(registry: Registry, now = () => performance.now()) {
    const gauge = (name: string, help: string, labelNames: string[] = []) =>
      new Gauge({ name, help, labelNames, registers: [registry] })
    this.#now = now
    this.#up = gauge('pombal_store_up', '1 while the store can be read and written.')
    this.#queued = gauge('pombal_messages_queued', 'Messages that wait to be sent, counted up to 100000.')
    this.#oldestQueued = gauge('pombal_messages_oldest_queued_seconds', 'Age of the message that has waited longest.')
    this.#waiting = gauge(
      'pombal_deliveries_waiting',
      'Deliveries that have not ended, each sort counted up to 100000: never tried, failed before, waiting for another.',
      ['readiness'],
    )
    this.#oldestDue = gauge(
      'pombal_deliveries_oldest_due_seconds',
      'For how long the oldest due delivery has been due.',
    )
    this.#connections = gauge('pombal_connections', 'Instances by the state of their connection.', ['state'])
    this.#unowned = gauge('pombal_instances_unowned', 'Instances that no node runs.')
    this.#bytes = gauge('pombal_store_bytes', 'Size of the database.')
  }

  /** Callers that come while the store is being asked share its answer. */
  refresh(sources: StoreSources): Promise<void> {
    if (this.#now() - this.#askedAt < KEPT_MS) return Promise.resolve()
    this.#refreshing ??= this.#ask(sources).finally(() => {
      this.#refreshing = null
    })
    return this.#refreshing
  }

  async #ask({ totals, ping }: StoreSources): Promise<void> {
    const [read, written] = await Promise.allSettled([
      withDeadline(ASK_WITHIN_MS, totals()),
      withDeadline(ASK_WITHIN_MS, ping()),
    ])
    if (read.status === 'fulfilled') this.#show(read.value)
    else this.#forget()
    const isUp = read.status === 'fulfilled' && written.status === 'fulfilled'
    this.#up.set(isUp ? 1 : 0)
    if (isUp) this.#askedAt = this.#now()
  }

  #show(totals: StoreTotals): void {
    this.#queued.set(totals.queued)
    this.#oldestQueued.set(totals.oldestQueuedMs / 1000)
    for (const [readiness, count] of Object.entries(totals.deliveries)) this.#waiting.set({ readiness }, count)
    this.#oldestDue.set(totals.oldestDueMs / 1000)
    for (const [state, count] of Object.entries(totals.connections)) this.#connections.set({ state }, count)
    this.#unowned.set(totals.unowned)
    this.#bytes.set(totals.bytes)
  }

  /** What is not known is not told. */
  #forget(): void {
    for (const gauge of [this.#queued, this.#oldestQueued, this.#oldestDue, this.#unowned, this.#bytes]) gauge.remove()
    this.#waiting.reset()
    this.#connections.reset()
  }
}
