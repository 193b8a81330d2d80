import type { StoredConnection } from '../../domain/connection.ts'
import {
  afterNotice,
  afterRefusal,
  isInForce,
  type Restriction,
  type RestrictionNotice,
} from '../../domain/restriction.ts'
import { QUERY_TIMEOUT_MS } from '../baileys/socket-options.ts'

/** Before nobody new is kept waiting any more, WhatsApp is asked how things stand; as long as a query may take. */
const ASK_BEFORE_MS = QUERY_TIMEOUT_MS
/** A timer cannot wait for longer than 24 days. */
const LONGEST_WAIT_MS = 86_400_000

export interface RestrictionWatchOptions {
  now: () => number
  /** Asks WhatsApp, who answers with a notice, if at all; nothing happens without an open link. */
  askWhatsapp(): Promise<void>
  /** It began, changed or ended; to be recorded, and the sender looks again. Memory is ahead of the store. */
  onChanged(): void
}

/**
 * Whether the account may write to somebody new. What a kill loses between a refusal and its record, the next refusal
 * teaches again, at the cost of the message it refuses.
 */
export class RestrictionWatch {
  readonly #options: RestrictionWatchOptions
  #restriction: Restriction | null = null
  #isLoaded = false
  #isAsking = false
  #timer: NodeJS.Timeout | undefined
  /** Of a restriction whose length we decided; on the clock that never jumps. */
  #endsAt = 0

  constructor(options: RestrictionWatchOptions) {
    this.#options = options
  }

  /** As it is to be stored. */
  get restriction(): Restriction | null {
    return this.#restriction
  }

  get isInForce(): boolean {
    return this.#isInForce(this.#restriction)
  }

  /** What was stored before; only the first time. */
  load(stored: Restriction | null): void {
    if (this.#isLoaded) return
    this.#isLoaded = true
    this.#take(stored)
    this.#wait()
  }

  /** What is told of a connection that is open. */
  describe(): Pick<StoredConnection, 'cause' | 'reason'> {
    const restriction = this.#restriction
    if (!this.#isInForce(restriction)) return { cause: 'connected', reason: 'Connected to WhatsApp.' }
    const until = `${new Date(restriction.until).toISOString().slice(0, 16).replace('T', ' ')} UTC`
    const when = restriction.reportedByWhatsapp ? `until ${until}` : `for now; Pombal tries again at ${until}`
    const reason = `Connected; but WhatsApp does not let the number write to anybody new ${when}. Such messages wait, the others go out.`
    return { cause: 'restricted', reason }
  }

  /** WhatsApp refused a message with 463, which does not say until when. */
  refused(): void {
    this.#change(afterRefusal(this.#restriction, this.#options.now()))
    this.ask()
  }

  told(notice: RestrictionNotice): void {
    this.#change(afterNotice(this.#restriction, notice, this.#options.now()))
  }

  /** Asks WhatsApp until when, if that is not known. */
  ask(): void {
    if (this.#isAsking || !this.isInForce || this.#restriction?.reportedByWhatsapp) return
    this.#isAsking = true
    // The answer comes as a notice; without one we wait as long as we decided to.
    const done = () => {
      this.#isAsking = false
    }
    this.#options.askWhatsapp().then(done, done)
  }

  /** Another account comes next. */
  clear(): void {
    this.#change(null)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  /** WhatsApp's own end is a moment, which a clock that is set right tells better. */
  #isInForce(restriction: Restriction | null): restriction is Restriction {
    if (restriction?.reportedByWhatsapp === false) return performance.now() < this.#endsAt
    return isInForce(restriction, this.#options.now())
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

  /** For its end; if nobody said when that is, WhatsApp is asked shortly before. */
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
    this.#timer = setTimeout(next, Math.min(Math.max(0, waitMs), LONGEST_WAIT_MS)).unref()
  }
}
