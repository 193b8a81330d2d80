import type { BinaryNode } from 'baileys'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import { userOf } from '../addresses.ts'

const CONTACTS = 2_000
/** More than the number of messages that wait to be decrypted. */
const MESSAGES = 4_000

interface Spent {
  left: number
  at: number
}

interface RetryBudgetOptions {
  /** The number of requests that a contact may cause at once. */
  burst: number
  /** After each period of this length, the contact may cause one more request. */
  refillMs: number
  now: () => number
}

/**
 * Limits the requests that each contact can cause with undecryptable messages, because anybody can send any number of
 * them. Baileys limits the requests only per message.
 */
export class RetryBudget {
  readonly #options: RetryBudgetOptions
  /** By message ID. */
  readonly #senders = new BoundedMap<string, string>(MESSAGES)
  readonly #spent = new BoundedMap<string, Spent>(CONTACTS)

  constructor(options: RetryBudgetOptions) {
    this.#options = options
  }

  note({ attrs: { id, from, participant } }: BinaryNode): void {
    const sender = userOf(participant ?? from)
    if (id && sender) this.#senders.set(id, sender)
  }

  /** Uses up one unit of the budget of the message's sender; unknown senders share one. False if none is left. */
  take(messageId = ''): boolean {
    const { burst, refillMs, now } = this.#options
    const sender = this.#senders.get(messageId) ?? ''
    const at = now()
    const spent = this.#spent.get(sender) ?? { left: burst, at }
    const left = Math.min(burst, spent.left + Math.max(0, at - spent.at) / refillMs)
    const granted = left >= 1
    this.#spent.set(sender, { left: granted ? left - 1 : left, at })
    return granted
  }
}
