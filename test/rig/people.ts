import type { Hardship } from './hardship.ts'
import type { Random } from './random.ts'

/** Shares of the texts that go to a number never written to before, to the group, … */
const TO_NEW = 0.15
const TO_GROUP = 0.15
/** … to one whose phone confirms nothing: what was not acknowledged before a kill has to go out again, … */
const TO_SILENT = 0.15
const SILENT = '15005550003'
/** … to one that answers with the same text, … */
const TO_ECHO = 0.1
export const ECHO = '15005550005'
/** … and, where WhatsApp makes it hard, to one who has two numbers, and to one whose number was not known at first. */
const TO_TWO_SPELLINGS = 0.15
const TO_HIDDEN = 0.1
const KNOWN_CONTACTS = 4
/** A contact writes so often before its number becomes known, and so often afterwards. */
const HIDDEN_FOR = [2, 6] as const
const KNOWN_FOR = [2, 4] as const

/** Whom a text is sent to. */
export interface Recipient {
  /** As the caller writes it. */
  to: string
  /** The phone's own number, or the group: whatever spelling was used, one chat. */
  chat: string
  /** The phones on which it has to appear. */
  phones: readonly string[]
  /** How far it gets: the phone of `15005550003` never confirms a message. */
  end: 'sent' | 'read'
}

/** Whom a text comes from. */
export interface Writer {
  from: string
  group?: string
}

/** A person with a number as WhatsApp has it, and as others write it: Brazil's, with and without the ninth digit. */
interface TwoSpellings {
  phone: string
  other: string
}

/** A contact that WhatsApp names by its LID alone, until it becomes known which number it has. */
interface HiddenContact {
  number: string
  writesLeft: number
  isKnown: boolean
}

/** The phones that one instance writes to, and that write to it. Those of one instance are never another one's. */
export class People {
  readonly #own: string
  readonly #phone: string
  readonly #group: string
  readonly #member: string
  readonly #contacts: [string, ...string[]]
  readonly #spelledTwice: readonly [TwoSpellings, TwoSpellings]
  readonly #hardship: Hardship | null
  #hidden: HiddenContact | null = null
  #hiddenCount = 0
  #newCount = 0

  /** @param phone the instance's own number @param hardship null: everybody has one number, which everybody knows */
  constructor(phone: string, hardship: Hardship | null) {
    const own = phone.slice(-6)
    this.#own = own
    this.#phone = phone
    this.#hardship = hardship
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

  /** WhatsApp finds people by both spellings of their numbers. */
  async settle(): Promise<void> {
    for (const { phone, other } of this.#spelledTwice) await this.#hardship?.spellTwice(other, phone)
  }

  pickRecipient(random: Random): Recipient {
    const shares: [number, () => Recipient][] = [
      [TO_GROUP, () => ({ to: this.#group, chat: this.#group, phones: [this.#member], end: 'read' })],
      [TO_SILENT, () => ({ ...oneNumber(SILENT), end: 'sent' })],
      [TO_ECHO, () => oneNumber(ECHO)],
      [TO_NEW, () => oneNumber(this.#newNumber())],
      ...(this.#hardship === null ? [] : this.#hardShares(random)),
    ]
    let share = random.next()
    for (const [size, recipient] of shares) {
      if (share < size) return recipient()
      share -= size
    }
    return oneNumber(random.pick(this.#contacts))
  }

  #hardShares(random: Random): [number, () => Recipient][] {
    const hidden = this.#hidden
    return [
      [TO_TWO_SPELLINGS, () => this.#spellingOf(random.pick(this.#spelledTwice), random)],
      // Looking its number up says which LID it has.
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
    if (this.#hardship === null) return { from: random.pick(this.#contacts) }
    if (share < TO_GROUP + TO_TWO_SPELLINGS) return { from: random.pick(this.#spelledTwice).phone }
    if (share < 2 * (TO_GROUP + TO_TWO_SPELLINGS)) return { from: await this.#hiddenContact(this.#hardship, random) }
    return { from: random.pick(this.#contacts) }
  }

  /** One contact after the other goes through it: hidden, known because it is written to or says so itself, gone. */
  async #hiddenContact(hardship: Hardship, random: Random): Promise<string> {
    let hidden = this.#hidden
    if (hidden?.writesLeft === 0 && !hidden.isKnown) {
      hidden.isKnown = true
      hidden.writesLeft = random.integer(...KNOWN_FOR)
      if (random.next() < 0.5) await hardship.showNumber(hidden.number)
    }
    if (hidden === null || hidden.writesLeft === 0) {
      if (hidden !== null) await hardship.showNumber(hidden.number)
      this.#hiddenCount += 1
      const number = `5541${this.#own}${String(this.#hiddenCount).padStart(3, '0')}`
      hidden = { number, writesLeft: random.integer(...HIDDEN_FOR), isKnown: false }
      this.#hidden = hidden
      await hardship.hideNumber(number)
    }
    hidden.writesLeft -= 1
    return hidden.number
  }
}

function oneNumber(number: string): Recipient {
  return { to: number, chat: number, phones: [number], end: 'read' }
}
