import { waitAtMost } from '../kit/deadline.ts'
import type { Session } from './engine/backend.ts'
import type { StoreLogger } from './engine/logger.ts'
import type { Statements } from './engine/statement.ts'

/** The time in milliseconds since 1970. All nodes agree on it, even if their machines' clocks differ. */
export interface StoreClock {
  /** For the timestamps of records and signatures. */
  readonly now: () => number
  /**
   * Equals `now` at the start and slowly approaches it afterwards. For the due times of retries. Never jumps back.
   * In a `DatabaseClock`, it jumps forward when both the machine's and the database's clock have done so, as after a
   * suspension of the machine.
   */
  readonly steady: () => number
  /**
   * Must be awaited before `now` is used for a new message: after a suspension of the machine, `now` is wrong until this
   * has resolved. Resolves within 2 s, even if the database is unreachable. Undefined: `now` is the machine's own clock.
   */
  readonly settled?: () => Promise<void>
}

const MEASURE_EVERY_MS = 10_000
/**
 * The clock offset is accurate to half the round-trip time. A slower measurement is discarded, unless the last offset is
 * certainly worse.
 */
const MAX_ROUND_TRIP_MS = 500
/** How far `steady` approaches `now` with each measurement. Quartz clocks drift apart by less. */
const MAX_SLEW_MS = 5
/** A larger difference between the machine's clock and the database's is logged. */
const WARN_ABOVE_MS = 2_000
/**
 * If the machine's two clocks have moved apart by more than this, the machine was suspended, which stops the monotonic
 * clock, or its wall clock was set.
 */
const MOVED_ABOVE_MS = 1_000
const RETRY_MS = 250
/** A measurement may hang on a connection that died during the suspension. The next one takes another connection. */
const ANSWER_WITHIN_MS = 1_000
const SETTLED_WITHIN_MS = 2_000

/**
 * The database's clock: the machine's monotonic clock plus an offset that is measured periodically, and immediately after
 * the machine was suspended. The wall clock is never used instead, because somebody may have set it.
 */
export class DatabaseClock implements StoreClock {
  readonly now = () => {
    if (this.#settling === null && this.#hasMoved) void this.settled()
    return Math.round(performance.now() + this.#offsetMs)
  }
  readonly steady = () => performance.now() + this.#steadyOffsetMs
  readonly #readClock: () => Promise<number>
  readonly #logger: StoreLogger | undefined
  readonly #timer: NodeJS.Timeout
  #steadyOffsetMs: number
  #offsetMs: number
  /** From the monotonic to the wall clock, when the last measurement began. */
  #wallOffsetMs: number
  /** The wall clock has jumped since the last measurement that was not discarded. */
  #hasJumped = false
  #settling: Promise<void> | null = null
  #closed = false
  #wasOff = false

  private constructor(readClock: () => Promise<number>, first: Measurement, logger: StoreLogger | undefined) {
    this.#readClock = readClock
    this.#logger = logger
    this.#steadyOffsetMs = this.#offsetMs = first.offsetMs
    this.#wallOffsetMs = first.wallOffsetMs
    this.#timer = setInterval(() => void this.#measure(), MEASURE_EVERY_MS)
    this.#timer.unref()
    this.#warnIfOff()
  }

  static async open(reader: Session, { db, now }: Statements, logger: StoreLogger | undefined): Promise<DatabaseClock> {
    const readClock = async () => {
      const [row] = await reader.query(db.selectNoFrom(now.as('now')))
      return row!.now
    }
    return new DatabaseClock(readClock, await measure(readClock), logger)
  }

  readonly settled = async (): Promise<void> => {
    if (!this.#hasMoved) return
    this.#settling ??= this.#settle().finally(() => {
      this.#settling = null
    })
    await waitAtMost(SETTLED_WITHIN_MS, this.#settling)
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#timer)
  }

  get #hasMoved(): boolean {
    return this.#differs(wallOffset())
  }

  #differs(wallOffsetMs: number): boolean {
    return Math.abs(wallOffsetMs - this.#wallOffsetMs) > MOVED_ABOVE_MS
  }

  async #settle(): Promise<void> {
    await waitAtMost(ANSWER_WITHIN_MS, this.#measure())
    while (this.#hasMoved && !this.#closed) {
      await new Promise(resolve => setTimeout(resolve, RETRY_MS).unref())
      await waitAtMost(ANSWER_WITHIN_MS, this.#measure())
    }
  }

  async #measure(): Promise<void> {
    try {
      const { offsetMs, roundTripMs, wallOffsetMs } = await measure(this.#readClock)
      this.#hasJumped ||= this.#differs(wallOffsetMs)
      // The new offset is wrong by half a round trip at most.
      const isWorse = Math.abs(offsetMs - this.#offsetMs) > roundTripMs
      if (roundTripMs <= MAX_ROUND_TRIP_MS || isWorse) {
        this.#offsetMs = offsetMs
        const behindMs = offsetMs - this.#steadyOffsetMs
        // Otherwise, after a suspension, other nodes would find the due times of waiting retries in the past.
        const mayJump = behindMs > MOVED_ABOVE_MS && this.#hasJumped
        this.#hasJumped = false
        this.#steadyOffsetMs += mayJump ? behindMs : Math.max(-MAX_SLEW_MS, Math.min(MAX_SLEW_MS, behindMs))
      }
      this.#wallOffsetMs = wallOffsetMs
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

interface Measurement {
  /** From the monotonic clock to the database's clock. */
  offsetMs: number
  roundTripMs: number
  wallOffsetMs: number
}

async function measure(readClock: () => Promise<number>): Promise<Measurement> {
  const wallOffsetMs = wallOffset()
  const sentAt = performance.now()
  const now = await readClock()
  const answeredAt = performance.now()
  return { offsetMs: now - (sentAt + answeredAt) / 2, roundTripMs: answeredAt - sentAt, wallOffsetMs }
}

function wallOffset(): number {
  return Date.now() - performance.now()
}
