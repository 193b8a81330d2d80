import type { Session } from './engine/backend.ts'
import type { StoreLogger } from './engine/logger.ts'
import type { Statements } from './engine/statement.ts'

/** What time it is, the same for all nodes, whatever their machines' clocks say. Milliseconds since 1970. */
export interface StoreClock {
  /** Stamps records and signatures. */
  readonly now: () => number
  /** The same at the start, and without any jump since: says when retries are due. */
  readonly steady: () => number
}

/** Where there is but one node: its machine's clock. */
export const machineClock: StoreClock = {
  now: () => Date.now(),
  steady: () => performance.timeOrigin + performance.now(),
}

const MEASURE_EVERY_MS = 10_000
/** Half of the way there and back is what a measure may be wrong by: one that took longer tells nothing new. */
const LONGEST_WAY_MS = 500
/** A machine whose clock is off by more should be looked at. */
const WORTH_A_WORD_MS = 2_000

/** The database's clock, measured now and then; in between the machine's monotonic one, which nobody sets. */
export class DatabaseClock implements StoreClock {
  readonly now = () => Math.round(performance.now() + this.#offsetMs)
  readonly steady = () => performance.now() + this.#firstOffsetMs
  readonly #ask: () => Promise<number>
  readonly #logger: StoreLogger | undefined
  readonly #timer: NodeJS.Timeout
  readonly #firstOffsetMs: number
  #offsetMs: number
  #wasOff = false

  private constructor(ask: () => Promise<number>, offsetMs: number, logger: StoreLogger | undefined) {
    this.#ask = ask
    this.#logger = logger
    this.#firstOffsetMs = this.#offsetMs = offsetMs
    this.#timer = setInterval(() => void this.#measure(), MEASURE_EVERY_MS)
    this.#timer.unref()
    this.#tellIfOff()
  }

  static async open(reader: Session, { db, now }: Statements, logger: StoreLogger | undefined): Promise<DatabaseClock> {
    const ask = async () => {
      const [row] = await reader.query(db.selectNoFrom(now.as('now')))
      return row!.now
    }
    return new DatabaseClock(ask, (await measure(ask)).offsetMs, logger)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async #measure(): Promise<void> {
    try {
      const { offsetMs, wayMs } = await measure(this.#ask)
      if (wayMs <= LONGEST_WAY_MS) this.#offsetMs = offsetMs
      this.#tellIfOff()
    } catch {
      // The database is away: what was measured before still holds.
    }
  }

  #tellIfOff(): void {
    const offMs = Math.round(Date.now() - this.now())
    const isOff = Math.abs(offMs) > WORTH_A_WORD_MS
    if (isOff && !this.#wasOff) this.#logger?.warn({ offMs }, 'clock.off')
    this.#wasOff = isOff
  }
}

/** From the monotonic clock to the database's. */
async function measure(ask: () => Promise<number>): Promise<{ offsetMs: number; wayMs: number }> {
  const askedAt = performance.now()
  const now = await ask()
  const answeredAt = performance.now()
  return { offsetMs: now - (askedAt + answeredAt) / 2, wayMs: answeredAt - askedAt }
}
