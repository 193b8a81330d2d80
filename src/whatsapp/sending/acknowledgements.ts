import type { Acknowledgement } from '../baileys/link.ts'

export interface AwaitedAcknowledgement {
  /** WhatsApp's answer. Null after the timeout or when the link closes. */
  answer: Promise<Acknowledgement | null>
  /** Stops waiting: `answer` resolves to null. */
  giveUp(): void
}

/** Waits for WhatsApp's acknowledgements, by WhatsApp ID. */
export class Acknowledgements {
  readonly #waiting = new Map<string, (ack: Acknowledgement | null) => void>()

  /** @param closed aborted when the link that carries the message closes */
  waitFor(whatsappId: string, closed: AbortSignal, timeoutMs: number): AwaitedAcknowledgement {
    const { promise, resolve } = Promise.withResolvers<Acknowledgement | null>()
    const settle = (ack: Acknowledgement | null) => {
      clearTimeout(timer)
      closed.removeEventListener('abort', giveUp)
      this.#waiting.delete(whatsappId)
      resolve(ack)
    }
    const giveUp = () => settle(null)
    const timer = setTimeout(giveUp, timeoutMs)
    closed.addEventListener('abort', giveUp, { once: true })
    this.#waiting.set(whatsappId, settle)
    if (closed.aborted) giveUp()
    return { answer: promise, giveUp }
  }

  /** @returns false if nothing waits for this acknowledgement */
  settle(ack: Acknowledgement): boolean {
    const settle = this.#waiting.get(ack.whatsappId)
    settle?.(ack)
    return settle !== undefined
  }
}
