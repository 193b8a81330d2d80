import type { Logger } from 'pino'
import { expiryFailure, type MessageFailure } from '../../../domain/message.ts'
import type { Lease } from '../../../store/leases/leases.ts'
import type { QueuedMessage } from '../../../store/messages/messages.ts'
import type { Store } from '../../../store/store.ts'
import type { Pacing } from '../pacing.ts'

const PAGE = 256
const MAX_INTERVAL_MS = 30_000

interface ExpiryOptions {
  lease: Lease
  store: Pick<Store, 'messages'>
  messageTtlMs: number
  pacing: Pick<Pacing, 'waitedUntil'>
  /** True while the message is being sent or its outcome is being recorded. */
  isInFlight(whatsappId: string): boolean
  /** The message has failed, and the failure is recorded. */
  onExpired(message: QueuedMessage): void
  logger: Logger
  now: () => number
  onFailed(error: unknown): void
}

/** Fails messages that have been queued for longer than `messageTtlMs`, oldest first, connected or not. */
export class Expiry {
  readonly #options: ExpiryOptions
  #timer: NodeJS.Timeout | undefined

  constructor(options: ExpiryOptions) {
    this.#options = options
  }

  start(): void {
    const { messageTtlMs, onFailed } = this.#options
    const intervalMs = Math.min(MAX_INTERVAL_MS, Math.max(messageTtlMs / 10, 100))
    this.#timer = setInterval(() => this.#failExpired().catch(onFailed), intervalMs)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #failExpired(): Promise<void> {
    const { store, lease, messageTtlMs, isInFlight, onExpired, pacing, logger, now } = this.#options
    for (;;) {
      const rows = await store.messages.listQueued(lease.instanceId, PAGE)
      const oldest = now() - messageTtlMs
      const expired: { message: QueuedMessage; failure: MessageFailure }[] = []
      for (const message of rows) {
        const failure = expiryFailure(message, oldest)
        const hasWaited = failure && !message.prepared && (await pacing.waitedUntil(message)) > oldest
        if (failure && !hasWaited && !isInFlight(message.whatsappId)) expired.push({ message, failure })
      }
      for (const { message, failure } of expired) {
        await store.messages.recordFailure(lease, message, failure, now())
        onExpired(message)
        logger.info({ instanceId: lease.instanceId, messageId: message.id, code: failure.code }, 'message.failed')
      }
      if (rows.length < PAGE || expired.length < rows.length) return
    }
  }
}
