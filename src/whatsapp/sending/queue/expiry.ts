import type { Logger } from 'pino'
import { expiryFailure } from '../../../domain/message.ts'
import type { Lease } from '../../../store/leases/leases.ts'
import type { QueuedAge } from '../../../store/messages/messages.ts'
import type { Store } from '../../../store/store.ts'
import type { Pacing } from '../pacing.ts'

const PAGE = 256
/** The run ends after this many pages without an expired message. */
const MAX_PAGES_IN_VAIN = 8
const MAX_INTERVAL_MS = 30_000

interface ExpiryOptions {
  lease: Lease
  store: Pick<Store, 'messages'>
  messageTtlMs: number
  pacing: Pick<Pacing, 'waitedUntil'>
  /** True while the message is being sent or its outcome is being recorded. */
  isInFlight(whatsappId: string): boolean
  /** The message has failed, and the failure is recorded. */
  onExpired(message: QueuedAge): void
  logger: Logger
  now: () => number
  onFailed(error: unknown): void
}

/**
 * Fails messages that have been queued for longer than `messageTtlMs`, oldest first, whether or not the instance is connected. Messages
 * that are old because the pace made them wait stay queued. A run ends after a limited number of pages without an
 * expired message, and the next run continues after them.
 */
export class Expiry {
  readonly #options: ExpiryOptions
  #timer: NodeJS.Timeout | undefined
  #isRunning = false
  /** The last row of the page that was read last. 0: the next page is the first one. */
  #readTo = 0

  constructor(options: ExpiryOptions) {
    this.#options = options
  }

  start(): void {
    const { messageTtlMs, onFailed } = this.#options
    const intervalMs = Math.min(MAX_INTERVAL_MS, Math.max(messageTtlMs / 10, 100))
    this.#timer = setInterval(() => this.#run().catch(onFailed), intervalMs)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return
    this.#isRunning = true
    try {
      await this.#failExpired()
    } finally {
      this.#isRunning = false
    }
  }

  async #failExpired(): Promise<void> {
    const { store, lease, messageTtlMs, now } = this.#options
    for (let pagesInVain = 0; pagesInVain < MAX_PAGES_IN_VAIN; ) {
      const rows = await store.messages.listQueuedAges(lease.instanceId, PAGE, this.#readTo)
      let failed = 0
      for (const message of rows) if (await this.#failIfExpired(message)) failed += 1
      const last = rows.at(-1)
      const mayFollow = rows.length === PAGE && last !== undefined && last.createdAt <= now() - messageTtlMs
      this.#readTo = mayFollow ? last.seq : 0
      if (!mayFollow) return
      if (failed === 0) pagesInVain += 1
    }
  }

  /** @returns whether it was recorded as failed */
  async #failIfExpired(message: QueuedAge): Promise<boolean> {
    const { store, lease, messageTtlMs, isInFlight, onExpired, pacing, logger, now } = this.#options
    const oldest = now() - messageTtlMs
    const failure = expiryFailure(message, oldest)
    if (failure === null) return false
    if (!message.isPrepared && (await pacing.waitedUntil(message)) > oldest) return false
    if (isInFlight(message.whatsappId)) return false
    // Since the page was read, the message may have been written, or acknowledged and recorded as sent.
    const outcome = await store.messages.recordFailure(lease, message, failure, now())
    onExpired(message)
    if (outcome !== 'recorded') return false
    logger.info({ instanceId: lease.instanceId, messageId: message.id, code: failure.code }, 'message.failed')
    return true
  }
}
