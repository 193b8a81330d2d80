import type { NetworkFaults } from './network-faults.ts'
import type { Random } from './random.ts'

// Shares of the texts, by recipient. The rest goes to known contacts.
/** To a number that was never written to. */
const TO_NEW = 0.15
const TO_GROUP = 0.15
/** To a phone that sends no receipts, so only the acknowledgement shows that a message was sent. */
const TO_SILENT = 0.15
const SILENT = '15005550003'
/** To a number that replies with the same text. */
const TO_ECHO = 0.1
export const ECHO = '15005550005'
/** With network faults: to a contact with two spellings of its number, and to one whose number was hidden at first. */
const TO_TWO_SPELLINGS = 0.15
const TO_HIDDEN = 0.1
const KNOWN_CONTACTS = 4
/** The range of how often a contact writes before its number becomes known, and afterwards. */
const HIDDEN_FOR = [2, 6] as const
const KNOWN_FOR = [2, 4] as const

/** The recipient of a text. */
export interface Recipient {
  /** As the caller writes it. */
  to: string
  /** The phone's own number, or the group. All spellings are one chat. */
  chat: string
  /** The phones on which the text must appear. */
  phones: readonly string[]
  /** The last state that it reaches: the phone of `15005550003` sends no receipts. */
  end: 'sent' | 'read'
}

/** The sender of a text. */
export interface Writer {
  from: string
  group?: string
}

/** A Brazilian number as WhatsApp has it, and its other spelling, with or without the ninth digit. */
interface TwoSpellings {
  phone: string
  other: string
}

/** A contact that WhatsApp names by LID alone until its number becomes known. */
interface HiddenContact {
  number: string
  writesLeft: number
  isKnown: boolean
}

/** The contacts of one instance. No two instances share one. */
export class Contacts {
  readonly #own: string
  readonly #phone: string
  readonly #group: string
  readonly #member: string
  readonly #contacts: [string, ...string[]]
  readonly #spelledTwice: readonly [TwoSpellings, TwoSpellings]
  readonly #networkFaults: NetworkFaults | null
  #hidden: HiddenContact | null = null
  #hiddenCount = 0
  #newCount = 0

  /** @param phone the instance's own number @param networkFaults null: each contact has one number, which is always known */
  constructor(phone: string, networkFaults: NetworkFaults | null) {
    const own = phone.slice(-6)
    this.#own = own
    this.#phone = phone
    this.#networkFaults = networkFaults
    this.#group = `120363${own}000042@g.us`
    this.#member = `5531${own}99`
    this.#contacts = [`5511${own}10`, ...Array.from({ length: KNOWN_CONTACTS - 1 }, (_, n) => `5511${own}1${n + 1}`)]
    this.#spelledTwice = [
      { phone: `5511${own}20`, other: `55119${own}20` },
      { phone: `55119${own}21`, other: `5511${own}21` },
    ]
  }

  get groupMembers(): { group: string; members: readonly string[] } {
    return { group: this.#group, members: [this.#phone, this.#member] }
  }

  /** Lets WhatsApp find contacts by both spellings of their numbers. */
  async registerSpellings(): Promise<void> {
    for (const { phone, other } of this.#spelledTwice) await this.#networkFaults?.addSpelling(other, phone)
  }

  pickRecipient(random: Random): Recipient {
    const shares: [number, () => Recipient][] = [
      [TO_GROUP, () => ({ to: this.#group, chat: this.#group, phones: [this.#member], end: 'read' })],
      [TO_SILENT, () => ({ ...oneNumber(SILENT), end: 'sent' })],
      [TO_ECHO, () => oneNumber(ECHO)],
      [TO_NEW, () => oneNumber(this.#newNumber())],
      ...(this.#networkFaults === null ? [] : this.#faultShares(random)),
    ]
    let share = random.next()
    for (const [size, recipient] of shares) {
      if (share < size) return recipient()
      share -= size
    }
    return oneNumber(random.pick(this.#contacts))
  }

  #faultShares(random: Random): [number, () => Recipient][] {
    const hidden = this.#hidden
    return [
      [TO_TWO_SPELLINGS, () => this.#spellingOf(random.pick(this.#spelledTwice), random)],
      // The look-up of its number reveals its LID.
      ...(hidden?.isKnown ? [[TO_HIDDEN, () => oneNumber(hidden.number)] as [number, () => Recipient]] : []),
    ]
  }

  #spellingOf({ phone, other }: TwoSpellings, random: Random): Recipient {
    return { ...oneNumber(phone), to: random.pick([phone, other]) }
  }

  #newNumber(): string {
    this.#newCount += 1
    return `5521${this.#phone.slice(-4)}${String(this.#newCount).padStart(5, '0')}`
  }

  async pickWriter(random: Random): Promise<Writer> {
    const share = random.next()
    if (share < TO_GROUP) return { from: this.#member, group: this.#group }
    if (this.#networkFaults === null) return { from: random.pick(this.#contacts) }
    if (share < TO_GROUP + TO_TWO_SPELLINGS) return { from: random.pick(this.#spelledTwice).phone }
    if (share < 2 * (TO_GROUP + TO_TWO_SPELLINGS))
      return { from: await this.#hiddenContact(this.#networkFaults, random) }
    return { from: random.pick(this.#contacts) }
  }

  /** The current hidden contact, or the next one. Its number becomes known by a look-up or by its own messages. */
  async #hiddenContact(networkFaults: NetworkFaults, random: Random): Promise<string> {
    let hidden = this.#hidden
    if (hidden?.writesLeft === 0 && !hidden.isKnown) {
      hidden.isKnown = true
      hidden.writesLeft = random.integer(...KNOWN_FOR)
      if (random.next() < 0.5) await networkFaults.showNumber(hidden.number)
    }
    if (hidden === null || hidden.writesLeft === 0) {
      if (hidden !== null) await networkFaults.showNumber(hidden.number)
      this.#hiddenCount += 1
      const number = `5541${this.#own}${String(this.#hiddenCount).padStart(3, '0')}`
      hidden = { number, writesLeft: random.integer(...HIDDEN_FOR), isKnown: false }
      this.#hidden = hidden
      await networkFaults.hideNumber(number)
    }
    hidden.writesLeft -= 1
    return hidden.number
  }
}

function oneNumber(number: string): Recipient {
  return { to: number, chat: number, phones: [number], end: 'read' }
}
