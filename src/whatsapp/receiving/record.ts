import type { Logger } from 'pino'
import { type IncomingChange, type IncomingMessage, isChange } from '../../domain/incoming-message.ts'
import type { MediaTerms } from '../../domain/media.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { Store } from '../../store/store.ts'
import { untilStored } from '../../store/until-stored.ts'
import type { SentReceipt } from '../baileys/parsing/receipt.ts'

/** A receipt may name any number of messages. Too many writes at once would make the store refuse calls. */
const RECORDED_AT_ONCE = 100

interface IncomingRecorderOptions {
  lease: Lease
  store: Pick<Store, 'messages' | 'events'>
  /** The quota and retention of files. Null: this node has no storage. */
  mediaTerms: MediaTerms | null
  logger: Logger
  now: () => number
  onFailed(error: unknown): void
}

/**
 * Records incoming messages and receipts. They are acknowledged to WhatsApp only after they are recorded. If recording fails
 * or the process is killed, WhatsApp delivers them again over the next link. WhatsApp limits how many of them may be
 * unacknowledged.
 */
export class IncomingRecorder {
  readonly #options: IncomingRecorderOptions
  readonly #inProgress = new Set<Promise<unknown>>()

  constructor(options: IncomingRecorderOptions) {
    this.#options = options
  }

  /**
   * @param closed aborted when the link that carried the receipt closes; ends the retries while the store is unavailable
   * @returns WhatsApp IDs of the known messages whose recipient sent the receipt
   */
  recordReceipt(receipt: SentReceipt, closed: AbortSignal): Promise<readonly string[]> {
    return this.#track(this.#recordReceipt(receipt, closed))
  }

  /** @param isAdmin whether the sender of a change is an admin of its group */
  recordIncoming(
    message: IncomingMessage | IncomingChange,
    closed: AbortSignal,
    isAdmin: (change: IncomingChange) => Promise<boolean>,
  ): Promise<void> {
    return this.#track(
      isChange(message) ? this.#recordChange(message, closed, isAdmin) : this.#recordMessage(message, closed),
    )
  }

  isRecorded(message: IncomingMessage | IncomingChange, closed: AbortSignal): Promise<boolean> {
    const { store, lease } = this.#options
    return untilStored(() => store.events.isRecorded(lease.instanceId, message), closed)
  }

  /** Resolves when nothing is being recorded. */
  async drained(): Promise<void> {
    await Promise.allSettled(this.#inProgress)
  }

  async #recordReceipt(receipt: SentReceipt, closed: AbortSignal): Promise<readonly string[]> {
    const { store, lease, logger, now } = this.#options
    const { reached, from } = receipt
    const record = (whatsappId: string, addresses: readonly string[]) =>
      untilStored(() => store.messages.recordReceipt(lease, whatsappId, reached, now(), addresses), closed)
    const recordOne = async (whatsappId: string) => {
      let { outcome, messageId } = await record(whatsappId, from)
      const address = outcome === 'foreign' ? await receipt.findAddress(whatsappId) : null
      if (address !== null) ({ outcome, messageId } = await record(whatsappId, [address]))
      const { instanceId } = lease
      logger.debug({ instanceId, messageId: messageId ?? undefined, whatsappId, reached, outcome }, 'receipt.recorded')
      return outcome === 'foreign' || outcome === 'unknown_message' ? [] : [whatsappId]
    }
    const recorded: string[] = []
    for (let at = 0; at < receipt.whatsappIds.length; at += RECORDED_AT_ONCE) {
      const some = receipt.whatsappIds.slice(at, at + RECORDED_AT_ONCE)
      recorded.push(...(await Promise.all(some.map(recordOne))).flat())
    }
    return recorded
  }

  async #recordMessage(message: IncomingMessage, closed: AbortSignal): Promise<void> {
    const { store, lease, logger, now, mediaTerms } = this.#options
    const startedAt = performance.now()
    const record = () => store.events.storeIncoming(lease, message, now(), mediaTerms)
    const outcome = await untilStored(record, closed)
    if (outcome === 'duplicate') return
    const durationMs = Math.round(performance.now() - startedAt)
    logger.info(
      { instanceId: lease.instanceId, whatsappId: message.id, type: message.type, durationMs },
      message.written ? 'message.written' : 'message.received',
    )
  }

  async #recordChange(
    arrived: IncomingChange,
    closed: AbortSignal,
    isAdmin: (change: IncomingChange) => Promise<boolean>,
  ): Promise<void> {
    const { store, lease, logger, now } = this.#options
    const log = { instanceId: lease.instanceId, whatsappId: arrived.target }
    // A member who deletes their own message may name its author by another address. That is not a change by an admin.
    const change = arrived.byAdmin && !(await isAdmin(arrived)) ? { ...arrived, byAdmin: false, ofOwn: false } : arrived
    // Whoever changes a message has it, so WhatsApp's server has it too.
    if (change.ofOwn)
      await untilStored(() => store.messages.recordProgress(lease, change.target, 'sent', now()), closed)
    const outcome = await untilStored(() => store.events.recordChange(lease, change, now()), closed)
    if (outcome === 'recorded') logger.info(log, change.change === 'edit' ? 'message.edited' : 'message.deleted')
    else if (outcome === 'ignored') logger.info(log, 'message.change_ignored')
  }

  #track<T>(work: Promise<T>): Promise<T> {
    const tracked = work.catch(error => {
      this.#options.onFailed(error)
      throw error
    })
    this.#inProgress.add(tracked)
    const done = () => this.#inProgress.delete(tracked)
    tracked.then(done, done)
    return tracked
  }
}
