import type { ConnectionHealth, Connections } from '../../store/connections/connections.ts'
import { LeaseLost } from '../../store/errors.ts'
import type { Lease } from '../../store/leases/leases.ts'

/**
 * A kill loses what was seen since; closes are told at once. On the clock's own half minutes, so that all connections
 * of a node tell in one commit.
 */
const TELL_EVERY_MS = 30_000
/** More between two tellings is a store that stays away. */
const MAX_CLOSES = 200

export interface HealthLogOptions {
  lease: Lease
  connections: Pick<Connections, 'findHealth' | 'recordHealth'>
  now: () => number
  onFailed(error: unknown): void
}

/** What was seen of a connection, told to the store now and then: nothing here costs a write of its own but a close. */
export class HealthLog {
  readonly #options: HealthLogOptions
  /** As stored by whoever had the connection before; null until it is read. */
  #seen: Omit<ConnectionHealth, 'closes'> | null = null
  #lastFrameAt: number | null = null
  #acknowledgement: ConnectionHealth['acknowledgement'] = null
  #undecryptable = 0
  #lastUndecryptableAt: number | null = null
  #closes: { at: number; code: number }[] = []
  #changed = false
  #telling: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined

  constructor(options: HealthLogOptions) {
    this.#options = options
  }

  start(): void {
    this.#tellLater()
  }

  frame(): void {
    this.#lastFrameAt = this.#options.now()
    this.#changed = true
  }

  /** @param latencyMs from the hand-over to the socket to WhatsApp's answer */
  acknowledged(latencyMs: number): void {
    this.#acknowledgement = { at: this.#options.now(), latencyMs }
    this.#changed = true
  }

  undecryptable(): void {
    this.#undecryptable += 1
    this.#lastUndecryptableAt = this.#options.now()
    this.#changed = true
  }

  closed(code: number): void {
    this.#closes.push({ at: this.#options.now(), code })
    this.#closes = this.#closes.slice(-MAX_CLOSES)
    this.#changed = true
    this.#tellSoon()
  }

  /** Tells what is left; resolves when it is told, or cannot be. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#tellSoon()
  }

  #tellLater(): void {
    const waitMs = TELL_EVERY_MS - (Date.now() % TELL_EVERY_MS)
    this.#timer = setTimeout(() => {
      this.#tellSoon()
      this.#tellLater()
    }, waitMs)
  }

  #tellSoon(): Promise<void> {
    this.#telling = this.#telling
      .then(() => this.#tell())
      .catch(error => {
        // Told the next time.
        this.#changed = true
        if (error instanceof LeaseLost) this.#options.onFailed(error)
      })
    return this.#telling
  }

  async #tell(): Promise<void> {
    if (!this.#changed) return
    this.#changed = false
    const { connections, lease, now } = this.#options
    this.#seen ??= await connections.findHealth(lease.instanceId, now())
    const closes = [...this.#closes]
    const report = {
      lastFrameAt: this.#lastFrameAt ?? this.#seen.lastFrameAt,
      acknowledgement: this.#acknowledgement ?? this.#seen.acknowledgement,
      undecryptable: this.#seen.undecryptable + this.#undecryptable,
      lastUndecryptableAt: this.#lastUndecryptableAt ?? this.#seen.lastUndecryptableAt,
    }
    await connections.recordHealth(lease, { ...report, closes }, now())
    this.#closes = this.#closes.filter(close => !closes.includes(close))
  }
}
