import { Gauge, type Registry } from 'prom-client'
import { withDeadline } from '../kit/deadline.ts'
import type { StoreTotals } from '../store/statistics/statistics.ts'

/** The store is queried at most once in this time, however often metrics are scraped. */
const FRESH_MS = 5_000
/** Limits the delay of a scrape if the store does not answer. */
const QUERY_TIMEOUT_MS = 3_000

export interface StoreSources {
  totals(): Promise<StoreTotals>
  /** Rejects unless the store can be written. */
  ping(): Promise<void>
}

function createGauges(registry: Registry) {
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers: [registry] })
  return {
    up: gauge('pombal_store_up', '1 while the store can be read and written.'),
    queued: gauge('pombal_messages_queued', 'Messages waiting to be sent, counted up to 100000.'),
    oldestQueued: gauge('pombal_messages_oldest_queued_seconds', 'Age of the oldest queued message.'),
    waiting: gauge(
      'pombal_deliveries_waiting',
      'Deliveries that have not ended, by readiness, each counted up to 100000: never attempted, to be retried, or waiting for another delivery.',
      ['readiness'],
    ),
    oldestDue: gauge('pombal_deliveries_oldest_due_seconds', 'Time since the oldest due delivery became due.'),
    connections: gauge('pombal_connections', 'Instances by the state of their connection.', ['state']),
    unowned: gauge('pombal_instances_unowned', 'Instances without a node that runs them.'),
    bytes: gauge('pombal_store_bytes', 'Size of the database.'),
    mediaBytes: gauge('pombal_media_bytes', 'Bytes of files in the storage.'),
    mediaPending: gauge('pombal_media_pending', 'Received files still to be fetched, counted up to 100000.'),
    urlsPending: gauge('pombal_url_fetches_pending', 'Files of messages still to be fetched from URLs, up to 100000.'),
    mediaFailed: gauge('pombal_media_failed', 'Received files that could not be fetched, by reason, until forgotten.', [
      'reason',
    ]),
  }
}

/** Gauges of the store's content, as of the last query. They are the same on every node. */
export class StoreGauges {
  readonly #gauges: ReturnType<typeof createGauges>
  #queriedAt = Number.NEGATIVE_INFINITY
  #refreshing: Promise<void> | null = null

  constructor(registry: Registry) {
    this.#gauges = createGauges(registry)
  }

  /** Concurrent callers share one query. */
  refresh(sources: StoreSources): Promise<void> {
    if (performance.now() - this.#queriedAt < FRESH_MS) return Promise.resolve()
    this.#refreshing ??= this.#query(sources).finally(() => {
      this.#refreshing = null
    })
    return this.#refreshing
  }

  async #query({ totals, ping }: StoreSources): Promise<void> {
    const [read, written] = await Promise.allSettled([
      withDeadline(QUERY_TIMEOUT_MS, totals()),
      withDeadline(QUERY_TIMEOUT_MS, ping()),
    ])
    if (read.status === 'fulfilled') this.#show(read.value)
    else this.#clear()
    const isUp = read.status === 'fulfilled' && written.status === 'fulfilled'
    this.#gauges.up.set(isUp ? 1 : 0)
    if (isUp) this.#queriedAt = performance.now()
  }

  #show(totals: StoreTotals): void {
    const { queued, oldestQueued, waiting, oldestDue, connections, unowned, bytes } = this.#gauges
    const { mediaBytes, mediaPending, urlsPending, mediaFailed } = this.#gauges
    queued.set(totals.queued)
    oldestQueued.set(totals.oldestQueuedMs / 1000)
    for (const [readiness, count] of Object.entries(totals.deliveries)) waiting.set({ readiness }, count)
    oldestDue.set(totals.oldestDueMs / 1000)
    for (const [state, count] of Object.entries(totals.connections)) connections.set({ state }, count)
    unowned.set(totals.unowned)
    bytes.set(totals.bytes)
    mediaBytes.set(totals.media.bytes)
    mediaPending.set(totals.media.pending)
    urlsPending.set(totals.media.fromUrls)
    for (const [reason, count] of Object.entries(totals.media.failed)) mediaFailed.set({ reason }, count)
  }

  /** Unknown values are not exported. */
  #clear(): void {
    const { queued, oldestQueued, waiting, oldestDue, connections, unowned, bytes } = this.#gauges
    const { mediaBytes, mediaPending, urlsPending, mediaFailed } = this.#gauges
    for (const gauge of [queued, oldestQueued, oldestDue, unowned, bytes]) gauge.remove()
    for (const gauge of [mediaBytes, mediaPending, urlsPending]) gauge.remove()
    mediaFailed.reset()
    waiting.reset()
    connections.reset()
  }
}
