import type { Session } from './engine/backend.ts'
import type { StoreLogger } from './engine/logger.ts'
import type { Statements } from './engine/statement.ts'

/** The time in milliseconds since 1970. All nodes agree on it, even if their machines' clocks differ. */
export interface StoreClock {
  /** For the timestamps of records and signatures. */
  readonly now: () => number
  /** Equals `now` at the start and never jumps afterwards, but slowly approaches it. For the due times of retries. */
  readonly steady: () => number
}

const MEASURE_EVERY_MS = 10_000
/** The clock offset is accurate to half the round-trip time. A slower measurement is discarded. */
const MAX_ROUND_TRIP_MS = 500
/** How far `steady` approaches `now` with each measurement. Quartz clocks drift apart by less. */
const MAX_SLEW_MS = 5
/** A larger difference between the machine's clock and the database's is logged. */
const WARN_ABOVE_MS = 2_000

/** The database's clock: the machine's monotonic clock plus an offset that is measured periodically. */
export class DatabaseClock implements StoreClock {
  readonly now = () => Math.round(performance.now() + this.#offsetMs)
  readonly steady = () => performance.now() + this.#steadyOffsetMs
  readonly #readClock: () => Promise<number>
  readonly #logger: StoreLogger | undefined
  readonly #timer: NodeJS.Timeout
  #steadyOffsetMs: number
  #offsetMs: number
  #wasOff = false

  private constructor(readClock: () => Promise<number>, offsetMs: number, logger: StoreLogger | undefined) {
    this.#readClock = readClock
    this.#logger = logger
    this.#steadyOffsetMs = this.#offsetMs = offsetMs
    this.#timer = setInterval(() => void this.#measure(), MEASURE_EVERY_MS)
    this.#timer.unref()
    this.#warnIfOff()
  }

  static async open(reader: Session, { db, now }: Statements, logger: StoreLogger | undefined): Promise<DatabaseClock> {
    const readClock = async () => {
      const [row] = await reader.query(db.selectNoFrom(now.as('now')))
      return row!.now
    }
    return new DatabaseClock(readClock, (await measure(readClock)).offsetMs, logger)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async #measure(): Promise<void> {
    try {
      const { offsetMs, roundTripMs } = await measure(this.#readClock)
      if (roundTripMs <= MAX_ROUND_TRIP_MS) {
        this.#offsetMs = offsetMs
        const behindMs = offsetMs - this.#steadyOffsetMs
        this.#steadyOffsetMs += Math.max(-MAX_SLEW_MS, Math.min(MAX_SLEW_MS, behindMs))
      }
      this.#warnIfOff()
    } catch {
      // The database is unreachable: keep the last offset.
    }
  }

  #warnIfOff(): void {
    const offMs = Math.round(Date.now() - this.now())
    const isOff = Math.abs(offMs) > WARN_ABOVE_MS
    if (isOff && !this.#wasOff) this.#logger?.warn({ offMs }, 'clock.off')
    this.#wasOff = isOff
  }
}

/** @returns the offset from the monotonic clock to the database's clock */
async function measure(readClock: () => Promise<number>): Promise<{ offsetMs: number; roundTripMs: number }> {
  const sentAt = performance.now()
  const now = await readClock()
  const answeredAt = performance.now()
  return { offsetMs: now - (sentAt + answeredAt) / 2, roundTripMs: answeredAt - sentAt }
}
