import { messageFailure } from '../../domain/message.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { MessageReference, Messages, QueuedMessage } from '../../store/messages/messages.ts'
import { untilStored } from '../../store/until-stored.ts'
import type { Acknowledgement } from '../baileys/link.ts'
import type { SendOutcome } from './send.ts'

/** If the store is slower than WhatsApp, sending waits for the store. */
const MAX_RECORDS = 256

/** An outcome that removes the message from the queue. */
type FinalOutcome = Extract<SendOutcome, { kind: 'acknowledged' | 'refused' }>

interface OutcomeRecorderOptions {
  lease: Lease
  messages: Pick<Messages, 'recordProgress' | 'recordFailure'>
  now: () => number
  /** Ends the retries while the store is unavailable. */
  signal: AbortSignal
  onRecorded(message: QueuedMessage): void
  onFailed(error: unknown): void
}

/** Records final outcomes under the instance's lease: state, event and delivery in one commit. */
export class OutcomeRecorder {
  readonly #options: OutcomeRecorderOptions
  /** Outcomes being recorded, by WhatsApp ID. */
  readonly #inFlight = new Map<string, Promise<void>>()

  constructor(options: OutcomeRecorderOptions) {
    this.#options = options
  }

  get isFull(): boolean {
    return this.#inFlight.size >= MAX_RECORDS
  }

  isRecording(whatsappId: string): boolean {
    return this.#inFlight.has(whatsappId)
  }

  record(message: QueuedMessage, outcome: FinalOutcome): void {
    this.#inFlight.set(message.whatsappId, this.#recordQueued(message, outcome))
  }

  async #recordQueued(message: QueuedMessage, outcome: FinalOutcome): Promise<void> {
    const { onRecorded, onFailed } = this.#options
    try {
      await this.#record(message, outcome)
      this.#inFlight.delete(message.whatsappId)
      onRecorded(message)
    } catch (error) {
      this.#inFlight.delete(message.whatsappId)
      onFailed(error)
    }
  }

  /** An acknowledgement after the timeout still counts. A refusal fails the message, even if it is already `sent`. */
  async recordLate({ whatsappId, error }: Acknowledgement): Promise<void> {
    const failure = error === undefined ? null : messageFailure('rejected_by_whatsapp', error)
    await this.#record({ whatsappId }, failure ? { kind: 'refused', failure } : { kind: 'acknowledged' })
  }

  /** Resolves when the outcomes that are being recorded are stored. */
  async drained(): Promise<void> {
    await Promise.all(this.#inFlight.values())
  }

  #record(message: MessageReference, outcome: FinalOutcome): Promise<unknown> {
    const { lease, messages, now, signal } = this.#options
    const write = () =>
      outcome.kind === 'acknowledged'
        ? messages.recordProgress(lease, message.whatsappId, 'sent', now())
        : messages.recordFailure(lease, message, outcome.failure, now())
    return untilStored(write, signal)
  }
}
