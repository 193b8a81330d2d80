import { type MessageFailure, messageFailure } from '../../domain/message.ts'
import { namesOf, parseRecipient } from '../../domain/recipients/recipient.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { LookedUpNumber, Numbers } from '../../store/numbers/numbers.ts'
import { untilStored } from '../../store/until-stored.ts'
import { lidOf, numberOf } from '../baileys/addresses.ts'
import type { Link } from '../baileys/link.ts'
import type { GroupDirectory, GroupSource } from './group-directory.ts'

/** Beyond this many numbers the store is queried again. */
const MAX_CACHED_NUMBERS = 1_000
/** WhatsApp's code for a client that sends too many queries. */
const RATE_LIMITED = 429

/** The WhatsApp address of a recipient. */
export type FoundAddress =
  | { kind: 'found'; address: string }
  /** WhatsApp gave no answer. Try again later. `rate_limited`: it refuses queries for now. */
  | { kind: 'unanswered'; why: string }
  | { kind: 'refused'; failure: MessageFailure }

interface AddressBookOptions {
  lease: Lease
  numbers: Numbers
  groups: GroupDirectory
  now: () => number
  /** Ends the retries while the store is unavailable. */
  signal: AbortSignal
}

/**
 * Finds the address of a recipient. Numbers are looked up on WhatsApp. The returned address may differ from the number
 * (Brazil's ninth digit). Without a look-up, WhatsApp would acknowledge a message to a number that it does not know. A
 * LID address is looked up in the same way. The result is the address of the person's number, if that is known.
 */
export class AddressBook {
  readonly #options: AddressBookOptions
  /** Stored look-ups. Only the instance's owner, this node, changes them. */
  readonly #cache = new BoundedMap<string, LookedUpNumber>(MAX_CACHED_NUMBERS)

  constructor(options: AddressBookOptions) {
    this.#options = options
  }

  async find(to: string, link: GroupSource & Pick<Link, 'lookUp'>): Promise<FoundAddress> {
    const recipient = parseRecipient(to)
    return recipient?.kind === 'group' ? this.#findGroup(recipient.group, link) : this.findNumber(to, link)
  }

  /** `known`: the recipient is a contact or a group. `numbers`: the numbers and the LID that the recipient may write from. */
  async findContactStatus(to: string): Promise<{ known: boolean; numbers: readonly string[] }> {
    if (parseRecipient(to)?.kind === 'group') return { known: true, numbers: [] }
    const { numbers, lease, signal } = this.#options
    const asked = namesOf(to, (await this.#recall(to))?.address)
    const known = await untilStored(() => numbers.isContact(lease.instanceId, asked), signal)
    return { known, numbers: asked }
  }

  /** The address without a query: the last one found, or else `to` itself. Null if the number is not on WhatsApp. */
  async recallAddress(to: string): Promise<string | null> {
    const recipient = parseRecipient(to)
    if (recipient === null || recipient.kind === 'group') return to
    const known = await this.#recall(to)
    if (known) return known.address
    return recipient.kind === 'lid' ? to : `${to}@s.whatsapp.net`
  }

  async #findGroup(group: string, link: GroupSource): Promise<FoundAddress> {
    const { groups } = this.#options
    const found = await groups.find(group, link)
    if (found === 'member') return { kind: 'found', address: group }
    if (found === 'silent') return { kind: 'unanswered', why: 'group_query' }
    return { kind: 'refused', failure: messageFailure('not_a_group_member') }
  }

  /** The next call reads the row again, which may have been erased together with the contact. */
  forget(number: string): void {
    this.#cache.delete(number)
  }

  /** @param number a number, or a LID address */
  async findNumber(number: string, link: Pick<Link, 'lookUp'>): Promise<FoundAddress> {
    const { numbers, lease, now, signal } = this.#options
    const stored = await this.#recall(number)
    let known: { address: string | null } | null = stored
    // The number of a LID may belong to somebody else by now. `lookUp` knows without a query.
    if (!known || (lidOf(number) !== undefined && numberOf(known.address) !== undefined)) {
      const answer = await link.lookUp(number).catch((error: { data?: unknown } | null) => {
        return { kind: error?.data === RATE_LIMITED ? ('limited' as const) : ('silent' as const) }
      })
      if (answer.kind === 'limited') return { kind: 'unanswered', why: 'rate_limited' }
      if (answer.kind === 'silent') return { kind: 'unanswered', why: 'look_up' }
      const address = answer.kind === 'found' ? answer.address : null
      if (address !== stored?.address) await untilStored(() => numbers.record(lease, number, address, now()), signal)
      known = { address }
    }
    if (known.address === null) return { kind: 'refused', failure: messageFailure('recipient_not_on_whatsapp') }
    return { kind: 'found', address: known.address }
  }

  /** WhatsApp's last answer, unless it has expired. */
  async #recall(number: string): Promise<LookedUpNumber | null> {
    const { numbers, lease, now, signal } = this.#options
    const cached = this.#cache.get(number)
    if (cached && cached.expiresAt > now()) return cached
    const found = await untilStored(() => numbers.find(lease.instanceId, number, now()), signal)
    // An incoming message may reveal the number of a LID, or that a number is on WhatsApp, at any time.
    if (found && found.address !== null && lidOf(number) === undefined) this.#cache.set(number, found)
    return found
  }
}
