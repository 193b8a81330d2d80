import { parseRecipient } from '../../domain/recipients/recipient.ts'
import type { AddressBook } from './address-book.ts'

/** Phones hide the indicator some time after the last notice. */
const REPEAT_MS = 10_000
const REQUEST = /^(\d{1,2}) (\S+)$/

interface TypingLink {
  readonly isOpen: boolean
  /** Not answered by WhatsApp, and lost if the link ends. */
  type(address: string, state: 'composing' | 'paused'): void
}

/** Shows the other side of a chat that the instance is typing. The notice may be lost, so none is stored. */
export class Typing {
  readonly #addresses: Pick<AddressBook, 'recallAddress'>
  readonly #findLink: () => TypingLink | null
  readonly #onFailed: (error: unknown) => void
  /** By chat. */
  readonly #timers = new Map<string, NodeJS.Timeout>()

  constructor(
    addresses: Pick<AddressBook, 'recallAddress'>,
    findLink: () => TypingLink | null,
    onFailed: (error: unknown) => void,
  ) {
    this.#addresses = addresses
    this.#findLink = findLink
    this.#onFailed = onFailed
  }

  /** @param request the subject of the hint `typing`: seconds and chat. A later request for the chat replaces it */
  show(request: string): void {
    const [, seconds, chat = ''] = REQUEST.exec(request) ?? []
    if (parseRecipient(chat) === null) return
    this.#show(chat, Number(seconds) * 1_000).catch(this.#onFailed)
  }

  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }

  async #show(chat: string, forMs: number): Promise<void> {
    clearTimeout(this.#timers.get(chat))
    this.#timers.delete(chat)
    const link = this.#findLink()
    const address = link && (await this.#addresses.recallAddress(chat))
    if (!link?.isOpen || !address) return
    link.type(address, forMs > 0 ? 'composing' : 'paused')
    if (forMs <= 0) return
    const pauseMs = Math.min(forMs, REPEAT_MS)
    const again = () => this.#show(chat, forMs - pauseMs).catch(this.#onFailed)
    clearTimeout(this.#timers.get(chat))
    this.#timers.set(chat, setTimeout(again, pauseMs).unref())
  }
}
