import { backoffMs } from '../kit/backoff.ts'
import type { Clock } from '../kit/clock.ts'
import type { Deliveries } from '../store/deliveries/deliveries.ts'
import { LeaseLost } from '../store/errors.ts'
import type { Lease } from '../store/leases/leases.ts'
import type { EndedAttempt } from './attempt.ts'
import type { NextAttempt } from './claim.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000

interface AttemptRecorderOptions {
  deliveries: Pick<Deliveries, 'recordAttempt'>
  clock: Clock
  /** Called once, when another node owns the instance. */
  onLeaseLost(): void
  /** The store did not accept a record. The write is retried. */
  onFailed(error: unknown): void
}

/** Records ended attempts under the instance's lease. Tries again until the store accepts them, the lease is lost or `stop`. */
export class AttemptRecorder {
  /** Attempts that ended, and whose record the store has not confirmed. */
  readonly unrecorded = new Set<EndedAttempt>()
  readonly #options: AttemptRecorderOptions
  #lease: Lease
  readonly #stopping = new AbortController()
  /** Aborted once the lease is lost or `stop` was called: nothing is recorded any more. */
  readonly stopSignal = this.#stopping.signal

  constructor(lease: Lease, options: AttemptRecorderOptions) {
    this.#lease = lease
    this.#options = options
  }

  /** Continues under a newer epoch of the same owner. */
  adopt(lease: Lease): void {
    if (lease.epoch > this.#lease.epoch) this.#lease = lease
  }

  stop(): void {
    this.#stopping.abort()
  }

  /** @returns what follows the attempt; `none` if it was not recorded and is in `unrecorded` */
  async record(ended: EndedAttempt): Promise<NextAttempt> {
    const { deliveries, onFailed } = this.#options
    const leaseOfAttempt = this.#lease
    this.unrecorded.add(ended)
    for (let failures = 0; !this.stopSignal.aborted; failures += 1) {
      const lease = this.#lease
      try {
        await deliveries.recordAttempt(lease, ended.delivery, ended.attempt, ended.next)
        this.unrecorded.delete(ended)
        if (ended.next.kind !== 'retry') return 'none'
        // Another owner may have made attempts between the two leases.
        return leaseOfAttempt === this.#lease ? ended.next.dueAt : 'unknown'
      } catch (error) {
        if (!(error instanceof LeaseLost)) onFailed(error)
        else if (lease === this.#lease) this.#loseLease()
      }
      if (lease === this.#lease) await this.#pause(backoffMs(failures, FIRST_PAUSE_MS, LONGEST_PAUSE_MS))
    }
    return 'none'
  }

  #loseLease(): void {
    if (this.stopSignal.aborted) return
    this.stop()
    this.#options.onLeaseLost()
  }

  async #pause(ms: number): Promise<void> {
    if (this.stopSignal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = this.#options.clock.after(ms, resolve)
    const resume = () => resolve()
    this.stopSignal.addEventListener('abort', resume)
    await promise
    cancel()
    this.stopSignal.removeEventListener('abort', resume)
  }
}
