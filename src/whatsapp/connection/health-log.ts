import type { ConnectionHealth, Connections } from '../../store/connections/connections.ts'
import { LeaseLost } from '../../store/errors.ts'
import type { Lease } from '../../store/leases/leases.ts'

/**
 * A kill loses the data of at most this time. Reports are aligned to the wall clock, so all connections of a node share
 * a commit.
 */
const REPORT_INTERVAL_MS = 30_000
/** Older closes are dropped if the store stays unavailable. */
const MAX_CLOSES = 200

interface HealthLogOptions {
  lease: Lease
  connections: Pick<Connections, 'findHealth' | 'recordHealth'>
  now: () => number
  onFailed(error: unknown): void
}

/** Collects the health of a connection and records it periodically. A close and the first acknowledgement are recorded at once. */
export class HealthLog {
  readonly #options: HealthLogOptions
  /** The values stored by the previous owner. Null until they are read. */
  #previous: Omit<ConnectionHealth, 'closes'> | null = null
  #lastFrameAt: number | null = null
  #acknowledgement: ConnectionHealth['acknowledgement'] = null
  #undecryptable = 0
  #lastUndecryptableAt: number | null = null
  #closes: { at: number; code: number }[] = []
  #changed = false
  #reporting: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined

  constructor(options: HealthLogOptions) {
    this.#options = options
  }

  start(): void {
    this.#reportLater()
  }

  /** A handler of the link's event, so it is bound. */
  readonly frame = (): void => {
    this.#lastFrameAt = this.#options.now()
    this.#changed = true
  }

  /** @param latencyMs the time from the write to WhatsApp's acknowledgement */
  acknowledged(latencyMs: number): void {
    const isFirst = this.#acknowledgement === null
    this.#acknowledgement = { at: this.#options.now(), latencyMs }
    this.#changed = true
    if (isFirst) this.#reportNow()
  }

  /** Bound like `frame`. */
  readonly undecryptable = (): void => {
    this.#undecryptable += 1
    this.#lastUndecryptableAt = this.#options.now()
    this.#changed = true
  }

  closed(code: number): void {
    this.#closes.push({ at: this.#options.now(), code })
    this.#closes = this.#closes.slice(-MAX_CLOSES)
    this.#changed = true
    this.#reportNow()
  }

  /** Records the latest changes. Resolves when the write has succeeded or failed. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#reportNow()
  }

  #reportLater(): void {
    const waitMs = REPORT_INTERVAL_MS - (Date.now() % REPORT_INTERVAL_MS)
    this.#timer = setTimeout(() => {
      this.#reportNow()
      this.#reportLater()
    }, waitMs)
  }

  #reportNow(): Promise<void> {
    this.#reporting = this.#reporting
      .then(() => this.#report())
      .catch(error => {
        // The next report repeats the lost data.
        this.#changed = true
        if (error instanceof LeaseLost) this.#options.onFailed(error)
      })
    return this.#reporting
  }

  async #report(): Promise<void> {
    if (!this.#changed) return
    this.#changed = false
    const { connections, lease, now } = this.#options
    this.#previous ??= await connections.findHealth(lease.instanceId, now())
    const closes = [...this.#closes]
    const report = {
      lastFrameAt: this.#lastFrameAt ?? this.#previous.lastFrameAt,
      acknowledgement: this.#acknowledgement ?? this.#previous.acknowledgement,
      undecryptable: this.#previous.undecryptable + this.#undecryptable,
      lastUndecryptableAt: this.#lastUndecryptableAt ?? this.#previous.lastUndecryptableAt,
    }
    await connections.recordHealth(lease, { ...report, closes }, now())
    this.#closes = this.#closes.filter(close => !closes.includes(close))
  }
}
