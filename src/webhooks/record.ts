import type { Deliveries } from '../store/deliveries/deliveries.ts'
import { LeaseLost } from '../store/errors.ts'
import type { Lease } from '../store/leases/leases.ts'
import type { EndedAttempt } from './attempt.ts'
import type { Clock } from './clock.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000

interface RecorderOptions {
  deliveries: Pick<Deliveries, 'recordAttempt'>
  clock: Clock
  /** Called once, when another node owns the instance. */
  onLeaseLost(): void
  /** The store did not accept a record, which is tried again. */
  onFailed(error: unknown): void
}

/** Records ended attempts under the instance's lease. Tries again until the store accepts them, the lease is lost or `stop`. */
export class Recorder {
  /** Attempts that ended and could not be recorded. */
  readonly unrecorded: EndedAttempt[] = []
  readonly #options: RecorderOptions
  #lease: Lease
  #stopped = false
  /** Each ends the pause of a record that is to be tried again. */
  readonly #pauses = new Set<() => void>()

  constructor(lease: Lease, options: RecorderOptions) {
    this.#lease = lease
    this.#options = options
  }

  get lease(): Lease {
    return this.#lease
  }

  /** Continues under a newer epoch of the same owner. */
  adopt(lease: Lease): void {
    if (lease.epoch > this.#lease.epoch) this.#lease = lease
  }

  stop(): void {
    this.#stopped = true
    for (const resume of this.#pauses) resume()
  }

  /** @returns whether the attempt was recorded; otherwise it is in `unrecorded` */
  async record(ended: EndedAttempt): Promise<boolean> {
    for (let pauseMs = FIRST_PAUSE_MS; !this.#stopped; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      const lease = this.#lease
      try {
        await this.#options.deliveries.recordAttempt(lease, ended.delivery, ended.attempt, ended.next)
        return true
      } catch (error) {
        if (!(error instanceof LeaseLost)) this.#options.onFailed(error)
        else if (lease === this.#lease) this.#loseLease()
      }
      if (lease === this.#lease) await this.#pause(pauseMs)
    }
    this.unrecorded.push(ended)
    return false
  }

  #loseLease(): void {
    if (this.#stopped) return
    this.stop()
    this.#options.onLeaseLost()
  }

  #pause(ms: number): Promise<void> {
    if (this.#stopped) return Promise.resolve()
    return new Promise(resolve => {
      const resume = () => {
        cancel()
        this.#pauses.delete(resume)
        resolve()
      }
      const cancel = this.#options.clock.after(ms, resume)
      this.#pauses.add(resume)
    })
  }
}
