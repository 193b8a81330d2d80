import type { BinaryNode } from 'baileys'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import { userOf } from '../addresses.ts'

const CONTACTS = 2_000
/** More than wait for their turn to be decrypted. */
const MESSAGES = 4_000

interface Spent {
  left: number
  at: number
}

export interface RetryBudgetOptions {
  /** How many requests a contact may cause at once. */
  burst: number
  /** After so long it may cause one more. */
  refillMs: number
  now: () => number
}

/**
 * Bounds how often messages of one contact that cannot be decrypted are asked for again: anybody can send any number of
 * them. Baileys counts by message only, and asks by the message's id.
 */
export class RetryBudget {
  readonly #options: RetryBudgetOptions
  /** By the id of a message. */
  readonly #senders = new BoundedMap<string, string>(MESSAGES)
  readonly #spent = new BoundedMap<string, Spent>(CONTACTS)

  constructor(options: RetryBudgetOptions) {
    this.#options = options
  }

  /** Notes who a message is from. */
  note({ attrs: { id, from, participant } }: BinaryNode): void {
    const sender = userOf(participant ?? from)
    if (id && sender) this.#senders.set(id, sender)
  }

  /** Whether the message may be asked for; if so, its sender has one request less. */
  take(messageId: string): boolean {
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
