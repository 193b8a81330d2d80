import type { BinaryNode, WASocket } from 'baileys'
import { BoundedMap } from '../../../kit/bounded-map.ts'

/** Four times the number of messages that wait at once, which leaves space for late acknowledgements. */
const MAX_UNANSWERED = 2_048
/** Stands for an error code of WhatsApp that is not a number. */
const UNKNOWN_ERROR = 500

/** WhatsApp's answer to a message of ours. */
export interface Acknowledgement {
  whatsappId: string
  /** WhatsApp's error code if it refused the message. */
  error: number | undefined
  /** WhatsApp's hash of the recipient's devices. It differs from ours if we wrote to other devices. */
  devicesHash: string | undefined
}

/** Reads acknowledgements from the stanzas: Baileys reports only refusals, and reports them too late. */
export class AcknowledgementReader {
  /** IDs of the latest messages written over this link and not answered yet. */
  readonly #unanswered = new BoundedMap<string, true>(MAX_UNANSWERED)

  expect(whatsappId: string): void {
    this.#unanswered.set(whatsappId, true)
  }

  listen({ ws }: WASocket, onAcknowledged: (ack: Acknowledgement) => void): void {
    ws.on('CB:ack', ({ attrs: { id, error, phash, ...rest } }: BinaryNode) => {
      // Not every network sends the class, so the ID of a message of ours is enough.
      if (!id || (rest['class'] !== 'message' && !this.#unanswered.has(id))) return
      this.#unanswered.delete(id)
      const code = error === undefined ? undefined : Number.parseInt(error, 10) || UNKNOWN_ERROR
      onAcknowledged({ whatsappId: id, error: code, devicesHash: phash })
    })
  }
}
