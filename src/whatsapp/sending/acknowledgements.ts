import type { Acknowledgement } from '../baileys/link.ts'

export interface AwaitedAcknowledgement {
  /** WhatsApp's answer; null when the time is up or the link has ended. */
  answer: Promise<Acknowledgement | null>
  /** Nobody waits any more. */
  giveUp(): void
}

/** Messages that wait for WhatsApp's acknowledgement, by WhatsApp id. */
export class Acknowledgements {
  readonly #waiting = new Map<string, (ack: Acknowledgement | null) => void>()

  /** @param closed of the link that the message is written to */
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

  /** False: nobody waits for this one, or not any more. */
  give(ack: Acknowledgement): boolean {
    const settle = this.#waiting.get(ack.whatsappId)
    settle?.(ack)
    return settle !== undefined
  }
}
