import type { Logger } from 'pino'
import { type IncomingMessage, incomingKeys } from '../../domain/event.ts'
import type { Batcher } from '../../kit/batcher.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { Store } from '../../store/store.ts'
import { untilStored } from '../../store/until-stored.ts'
import type { SentReceipt } from '../baileys/parse-receipt.ts'

/** Messages that come a second time by another way within one link. */
const RECENT = 1_000

export interface RecorderOptions {
  lease: Lease
  store: Pick<Store, 'messages' | 'events'>
  batcher: Batcher
  logger: Logger
  now: () => number
  onFailed(error: unknown): void
}

/**
 * Records what comes in. WhatsApp is told that we have something only after it is recorded, so what is lost here (a kill,
 * a store that stays away) is delivered again with the next link. What is on the way is bounded by what WhatsApp sends
 * unacknowledged.
 */
export class Recorder {
  readonly #options: RecorderOptions
  readonly #recent = new BoundedMap<string, true>(RECENT)
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(options: RecorderOptions) {
    this.#options = options
  }

  /** @param closed of the link that it came by; a store that is away is waited for only as long as that link lasts */
  /** @returns the messages that went to whom the receipt is from */
  recordReceipt(receipt: SentReceipt, closed: AbortSignal): Promise<readonly string[]> {
    return this.#track(this.#options.batcher.runAsync(() => this.#recordReceipt(receipt, closed)))
  }

  recordIncoming(message: IncomingMessage, closed: AbortSignal): Promise<void> {
    return this.#track(this.#recordIncoming(message, closed))
  }

  /** Resolves when nothing is being recorded any more. */
  async drained(): Promise<void> {
    await Promise.allSettled(this.#underWay)
  }

  async #recordReceipt(receipt: SentReceipt, closed: AbortSignal): Promise<readonly string[]> {
    const { store, lease, logger, now } = this.#options
    const { whatsappIds, reached, from } = receipt
    const record = (whatsappId: string, addresses: readonly string[]) =>
      untilStored(() => store.messages.recordProgress(lease, whatsappId, reached, now(), addresses), closed)
    const recorded = await Promise.all(
      whatsappIds.map(async whatsappId => {
        let outcome = await record(whatsappId, from)
        const address = outcome === 'foreign' ? await receipt.findAddress(whatsappId) : null
        if (address !== null) outcome = await record(whatsappId, [address])
        logger.debug({ instanceId: lease.instanceId, whatsappId, reached, outcome }, 'receipt.recorded')
        return outcome === 'foreign' ? [] : [whatsappId]
      }),
    )
    return recorded.flat()
  }

  async #recordIncoming(message: IncomingMessage, closed: AbortSignal): Promise<void> {
    const keys = incomingKeys(message)
    if (keys.some(key => this.#recent.has(key))) return
    const { store, lease, logger, now } = this.#options
    const startedAt = performance.now()
    const outcome = await untilStored(() => store.events.recordIncoming(lease, message, now()), closed)
    for (const key of keys) this.#recent.set(key, true)
    if (outcome === 'duplicate') return
    const durationMs = Math.round(performance.now() - startedAt)
    logger.info(
      { instanceId: lease.instanceId, whatsappId: message.id, type: message.type, durationMs },
      'message.received',
    )
  }

  #track<T>(work: Promise<T>): Promise<T> {
    const tracked = work.catch(error => {
      this.#options.onFailed(error)
      throw error
    })
    this.#underWay.add(tracked)
    const done = () => this.#underWay.delete(tracked)
    tracked.then(done, done)
    return tracked
  }
}
