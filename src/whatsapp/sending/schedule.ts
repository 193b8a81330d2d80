import type { Lease } from '../../store/leases/leases.ts'
import type { Messages } from '../../store/messages/messages.ts'
import { untilStored } from '../../store/until-stored.ts'

/** Finds scheduled messages whose hint was lost. */
const POLL_INTERVAL_MS = 30_000

interface ScheduleOptions {
  lease: Lease
  messages: Pick<Messages, 'releaseDue'>
  now: () => number
  /** Ends the retries while the store is unavailable. */
  signal: AbortSignal
  onFailed(error: unknown): void
}

/** Puts scheduled messages into the queue when they are due, whether or not the instance is connected. */
export class Schedule {
  readonly #options: ScheduleOptions
  #timer: NodeJS.Timeout | undefined
  #running = false
  #again = false
  #stopped = false

  constructor(options: ScheduleOptions) {
    this.#options = options
  }

  start(): void {
    this.wake()
  }

  /** There may be a new scheduled message. */
  wake(): void {
    this.#again = true
    if (!this.#running && !this.#stopped) this.#run().catch(this.#options.onFailed)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  async #run(): Promise<void> {
    const { lease, messages, now, signal } = this.#options
    this.#running = true
    clearTimeout(this.#timer)
    let waitMs = POLL_INTERVAL_MS
    try {
      while (this.#again) {
        this.#again = false
        const next = await untilStored(() => messages.releaseDue(lease, now()), signal)
        waitMs = next === null ? POLL_INTERVAL_MS : Math.min(Math.max(next - now(), 0), POLL_INTERVAL_MS)
      }
    } finally {
      this.#running = false
      if (!this.#stopped) this.#timer = setTimeout(() => this.wake(), waitMs)
    }
  }
}
