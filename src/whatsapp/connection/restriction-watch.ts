import type { StoredConnection } from '../../domain/connection/connection.ts'
import {
  afterNotice,
  afterRefusal,
  isInForce,
  type Restriction,
  type RestrictionNotice,
} from '../../domain/connection/restriction.ts'
import { QUERY_TIMEOUT_MS } from '../baileys/socket-options.ts'

/** WhatsApp is asked this long before an assumed end, so its answer arrives before messages to strangers are sent. */
const ASK_BEFORE_MS = QUERY_TIMEOUT_MS
/** Longer waits use several timers, because a timer is limited to 24 days. */
const MAX_TIMER_MS = 86_400_000

interface RestrictionWatchOptions {
  now: () => number
  /** Asks WhatsApp, which may answer with a notice. Does nothing without an open link. */
  askWhatsapp(): Promise<void>
  /** The restriction began, changed or ended. It is in force before it is recorded. */
  onChanged(): void
}

/**
 * Tracks whether WhatsApp lets the account write to strangers. A kill before a refusal is recorded loses the restriction, and
 * the next refused message restores it.
 */
export class RestrictionWatch {
  readonly #options: RestrictionWatchOptions
  #restriction: Restriction | null = null
  #isLoaded = false
  #isAsking = false
  #timer: NodeJS.Timeout | undefined
  /** When an assumed restriction ends (`performance.now()`). */
  #endsAt = 0

  constructor(options: RestrictionWatchOptions) {
    this.#options = options
  }

  get restriction(): Restriction | null {
    return this.#restriction
  }

  /** A reported end is a wall-clock time. An assumed end must not move when the wall clock is set. */
  get isInForce(): boolean {
    const restriction = this.#restriction
    if (restriction === null) return false
    return restriction.reportedByWhatsapp
      ? isInForce(restriction, this.#options.now())
      : performance.now() < this.#endsAt
  }

  /** Sets the stored restriction. Only the first call has an effect. */
  load(stored: Restriction | null): void {
    if (this.#isLoaded) return
    this.#isLoaded = true
    this.#take(stored)
    this.#wait()
  }

  /** Cause and reason of an open connection. */
  describe(): Pick<StoredConnection, 'cause' | 'reason'> {
    const restriction = this.#restriction
    if (restriction === null || !this.isInForce) return { cause: 'connected', reason: 'Connected to WhatsApp.' }
    const until = `${new Date(restriction.until).toISOString().slice(0, 16).replace('T', ' ')} UTC`
    const when = restriction.reportedByWhatsapp ? `until ${until}` : `for now (Pombal tries again at ${until})`
    const reason = `Connected, but WhatsApp does not let the number write to new recipients ${when}. Messages to them wait; others are sent.`
    return { cause: 'restricted', reason }
  }

  /** WhatsApp refused a message with 463, which does not say when the restriction ends. */
  onRefusal(): void {
    this.#change(afterRefusal(this.#restriction, this.#options.now()))
    this.ask()
  }

  onNotice(notice: RestrictionNotice): void {
    this.#change(afterNotice(this.#restriction, notice, this.#options.now()))
  }

  /** Asks WhatsApp for the end, if WhatsApp has not reported it. */
  ask(): void {
    if (this.#isAsking || !this.isInForce || this.#restriction?.reportedByWhatsapp) return
    this.#isAsking = true
    // The answer arrives as a notice. Without one the assumed end stays.
    const done = () => {
      this.#isAsking = false
    }
    this.#options.askWhatsapp().then(done, done)
  }

  clear(): void {
    this.#change(null)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #change(next: Restriction | null): void {
    const before = this.#restriction
    if (
      before?.since === next?.since &&
      before?.until === next?.until &&
      before?.reportedByWhatsapp === next?.reportedByWhatsapp
    )
      return
    this.#take(next)
    this.#wait()
    this.#options.onChanged()
  }

  #take(restriction: Restriction | null): void {
    this.#restriction = restriction
    if (restriction) this.#endsAt = performance.now() + restriction.until - this.#options.now()
  }

  /** Waits for the end. WhatsApp is asked shortly before an assumed end. */
  #wait(asked = false): void {
    clearTimeout(this.#timer)
    if (!this.#restriction) return
    const { until, reportedByWhatsapp } = this.#restriction
    const asks = !reportedByWhatsapp && !asked
    const leftMs = reportedByWhatsapp ? until - this.#options.now() : this.#endsAt - performance.now()
    const waitMs = leftMs - (asks ? ASK_BEFORE_MS : 0)
    const next = () => {
      if (!this.isInForce) return this.#change(null)
      this.#wait(asked || asks)
      if (asks) this.ask()
    }
    this.#timer = setTimeout(next, Math.min(Math.max(0, waitMs), MAX_TIMER_MS)).unref()
  }
}
