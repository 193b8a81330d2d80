import type { Logger } from 'pino'
import { type MessageFailure, messageFailure } from '../../domain/message.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { QueuedMessage } from '../../store/messages/messages.ts'
import type { Store } from '../../store/store.ts'

/** Rows looked through at a time. */
const PAGE = 256
const EVERY_MS = 30_000

export interface ExpiryOptions {
  lease: Lease
  store: Pick<Store, 'messages'>
  messageTtlMs: number
  /** What becomes of the message is about to be known, or is being recorded. */
  isInHand(whatsappId: string): boolean
  /** It has failed, and that is recorded. */
  onExpired(message: QueuedMessage): void
  logger: Logger
  now: () => number
  onFailed(error: unknown): void
}

/** Fails what has been queued for too long, oldest first, also while nothing is connected. */
export class Expiry {
  readonly #options: ExpiryOptions
  #timer: NodeJS.Timeout | undefined

  constructor(options: ExpiryOptions) {
    this.#options = options
  }

  start(): void {
    const { messageTtlMs, onFailed } = this.#options
    const everyMs = Math.min(EVERY_MS, Math.max(messageTtlMs / 10, 100))
    this.#timer = setInterval(() => this.#failOld().catch(onFailed), everyMs)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Null while the message may still go out. */
  failureOf({ createdAt, prepared }: QueuedMessage): MessageFailure | null {
    const { now, messageTtlMs } = this.#options
    return now() - createdAt >= messageTtlMs ? messageFailure(prepared ? 'unconfirmed' : 'expired') : null
  }

  async #failOld(): Promise<void> {
    const { store, lease, isInHand, onExpired, logger, now } = this.#options
    for (;;) {
      const rows = await store.messages.listQueued(lease.instanceId, PAGE)
      const old = rows.flatMap(message => {
        const failure = isInHand(message.whatsappId) ? null : this.failureOf(message)
        return failure ? [{ message, failure }] : []
      })
      for (const { message, failure } of old) {
        await store.messages.recordFailure(lease, message, failure, now())
        onExpired(message)
        logger.info({ instanceId: lease.instanceId, messageId: message.id, code: failure.code }, 'message.failed')
      }
      if (rows.length < PAGE || old.length < rows.length) return
    }
  }
}
