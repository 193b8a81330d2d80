import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { MessageStep } from '../domain/message.ts'
import type { StoreObserver, WriteEnd } from '../store/observer.ts'
import { StoreGauges, type StoreSources } from './store-gauges.ts'

/** Values that are read for each scrape. All others are counted as they happen. */
export interface MetricsSources extends StoreSources {
  /** Attempts in flight on this node. */
  inFlight(): number
  /** Instances that this node runs. */
  owned(): number
  /** The disk of the data folder; null if it is unknown. */
  diskSpace(): Promise<{ freeBytes: number; totalBytes: number } | null>
}

/** The properties of an ended attempt that are counted. */
interface CountedAttempt {
  attempt: { attemptNumber: number; status: number | null; error: string | null; durationMs: number }
  latenessMs: number
  next: { kind: 'delivered' | 'retry' | 'exhausted' }
}

/** The properties of an answered HTTP request that are counted. `route` is a pattern, so its values are few. */
interface CountedRequest {
  method: string
  route: string
  status: number
  /** Null for a stream, which lasts as long as its caller reads. */
  durationMs: number | null
}

export interface MetricsText {
  contentType: string
  text: string
}

const WRITE_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const ATTEMPT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const LATENESS_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 120, 600]

/**
 * Counts what happens on this node, in memory, and renders it for Prometheus. No label contains an instance, so the number of
 * series does not grow with the instances.
 */
export class Metrics implements StoreObserver {
  readonly #registry = new Registry()
  readonly #gauges = new StoreGauges(this.#registry)
  readonly #writeSeconds = new Histogram({
    name: 'pombal_store_write_seconds',
    help: 'From the call of a write to its commit, by operation: messages.accept is what a 202 waits for, deliveries.attempt records an attempt.',
    labelNames: ['operation'],
    buckets: WRITE_BUCKETS,
    registers: [this.#registry],
  })
  readonly #writeFailures = this.#counter(
    'pombal_store_write_failures_total',
    'Writes that were not committed, because the store was unavailable or the write failed.',
    ['end'],
  )
  readonly #fencedWrites = this.#counter(
    'pombal_fenced_writes_total',
    'Writes refused because the lease of their instance had moved on.',
  )
  readonly #leasesLost = this.#counter(
    'pombal_leases_lost_total',
    'Instances stopped on this node because their lease was lost or could not be renewed.',
  )
  readonly #threadDeaths = this.#counter(
    'pombal_whatsapp_thread_deaths_total',
    'WhatsApp threads that died and were replaced. Their instances reconnected.',
  )
  readonly #attempts = this.#counter(
    'pombal_webhook_attempts_total',
    'Attempts that ended, by the class of the response status or the reason why there was none.',
    ['outcome'],
  )
  readonly #attemptSeconds = new Histogram({
    name: 'pombal_webhook_attempt_seconds',
    help: 'Duration of attempts, from their start to the last byte read of the response.',
    buckets: ATTEMPT_BUCKETS,
    registers: [this.#registry],
  })
  readonly #latenessSeconds = new Histogram({
    name: 'pombal_webhook_attempt_lateness_seconds',
    help: 'From the due time of an attempt to its start. First attempts are due when their event is created.',
    labelNames: ['attempt'],
    buckets: LATENESS_BUCKETS,
    registers: [this.#registry],
  })
  readonly #deliveries = this.#counter(
    'pombal_deliveries_ended_total',
    'Deliveries that ended: delivered, or exhausted after the last attempt.',
    ['state'],
  )
  readonly #requests = this.#counter(
    'pombal_http_requests_total',
    'Answered HTTP requests, by method, route and status.',
    ['method', 'route', 'status'],
  )
  readonly #requestSeconds = new Histogram({
    name: 'pombal_http_request_seconds',
    help: 'From the headers of a request to the end of its answer, by route. Streams of events are not included.',
    labelNames: ['method', 'route'],
    buckets: REQUEST_BUCKETS,
    registers: [this.#registry],
  })
  readonly #messages = this.#counter('pombal_messages_total', 'Steps of messages that were recorded.', [
    'direction',
    'step',
  ])
  readonly #failures = this.#counter('pombal_messages_failed_total', 'Messages that failed, by the failure code.', [
    'code',
  ])
  readonly #fetches = this.#counter(
    'pombal_url_fetches_total',
    'Attempts to fetch the file of a message from its URL that ended, by outcome.',
    ['outcome'],
  )
  readonly #disk = new Gauge({
    name: 'pombal_disk_bytes',
    help: 'The disk of the data folder: what is free, and its size.',
    labelNames: ['kind'],
    registers: [this.#registry],
  })
  readonly #inFlight = this.#gauge('pombal_webhook_attempts_in_flight', 'Attempts in flight on this node.')
  readonly #owned = this.#gauge('pombal_instances_owned', 'Instances that this node runs.')

  constructor(version: string) {
    collectDefaultMetrics({ register: this.#registry })
    new Gauge({
      name: 'pombal_build_info',
      help: 'Always 1. The label contains the version.',
      labelNames: ['version'],
      registers: [this.#registry],
    }).set({ version }, 1)
    for (const step of ['accepted', 'sent', 'delivered', 'read', 'failed'])
      this.#messages.inc({ direction: 'out', step }, 0)
    this.#messages.inc({ direction: 'in', step: 'received' }, 0)
    for (const outcome of ['stored', 'retry', 'not_fetched']) this.#fetches.inc({ outcome }, 0)
    for (const state of ['delivered', 'exhausted']) this.#deliveries.inc({ state }, 0)
    for (const end of ['unavailable', 'failed'] satisfies WriteEnd[]) this.#writeFailures.inc({ end }, 0)
  }

  onWrite(operation: string, durationMs: number, end: WriteEnd): void {
    if (end === 'committed') this.#writeSeconds.observe({ operation }, durationMs / 1000)
    else if (end === 'fenced') this.#fencedWrites.inc()
    else this.#writeFailures.inc({ end })
  }

  onMessageStep(step: MessageStep): void {
    this.#messages.inc({ direction: step.step === 'received' ? 'in' : 'out', step: step.step })
    if (step.step === 'failed') this.#failures.inc({ code: step.code })
  }

  onRequest({ method, route, status, durationMs }: CountedRequest): void {
    this.#requests.inc({ method, route, status })
    if (durationMs !== null) this.#requestSeconds.observe({ method, route }, durationMs / 1000)
  }

  onAttempt({ attempt, latenessMs, next }: CountedAttempt): void {
    const { attemptNumber, status, error, durationMs } = attempt
    this.#attempts.inc({ outcome: status === null ? (error ?? 'unknown') : `${Math.floor(status / 100)}xx` })
    this.#attemptSeconds.observe(durationMs / 1000)
    this.#latenessSeconds.observe({ attempt: attemptNumber === 1 ? 'first' : 'retry' }, latenessMs / 1000)
    if (next.kind !== 'retry') this.#deliveries.inc({ state: next.kind })
  }

  /** @param outcome `stored`, `retry`, `given_up`, or why it failed for good */
  onFetch(outcome: string): void {
    this.#fetches.inc({ outcome })
  }

  onLeaseLost(): void {
    this.#leasesLost.inc()
  }

  onThreadDied(): void {
    this.#threadDeaths.inc()
  }

  /** While the store cannot be read, its gauges are omitted. `pombal_store_up` is 0 unless it can be read and written. */
  async render(sources: MetricsSources): Promise<MetricsText> {
    this.#inFlight.set(sources.inFlight())
    this.#owned.set(sources.owned())
    const [disk] = await Promise.all([sources.diskSpace(), this.#gauges.refresh(sources)])
    this.#disk.reset()
    if (disk !== null) {
      this.#disk.set({ kind: 'free' }, disk.freeBytes)
      this.#disk.set({ kind: 'total' }, disk.totalBytes)
    }
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() }
  }

  #counter<L extends string = never>(name: string, help: string, labelNames: L[] = []): Counter<L> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] })
  }

  #gauge(name: string, help: string): Gauge {
    return new Gauge({ name, help, registers: [this.#registry] })
  }
}
