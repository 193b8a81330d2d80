import type { Action, When } from '@pombal/simulator'
import type { Network } from '../network.ts'
import type { Random } from './random.ts'

/** Of the messages to an instance, this share cannot be decrypted before it is asked for again. */
const UNDECRYPTABLE = 0.05
/** Of the receipts of an instance, and of its recipients, this share is lost: it is asked for, or given, again at a login. */
const RECEIPTS_LOST = 0.2
const RECIPIENTS_RECEIPTS_LOST = 0.1
/** Of the messages to an instance alone, this share names the sender by number instead of LID; a group names all by LID. */
const NAMED_BY_NUMBER = 0.15

export interface HardshipCounts {
  /** Receipts of instances, and of recipients, that were lost. */
  receiptsLost: number
  /** Contacts that WhatsApp named by LID alone for a while. */
  hidden: number
}

/**
 * What WhatsApp does to all instances of a run: messages that cannot be decrypted at once, receipts that are lost, so that
 * messages are delivered again at the next login, and senders that are named now by number, now by LID.
 */
export class Hardship {
  readonly #network: Network
  readonly #receiptsLost: number[] = []
  readonly #others: number[] = []
  readonly #hidden = new Map<string, number>()
  #hiddenCount = 0

  private constructor(network: Network) {
    this.#network = network
  }

  static async begin(network: Network, random: Random): Promise<Hardship> {
    await network.misbehave({ kind: 'seed', seed: random.integer(0, 2 ** 31) })
    const hardship = new Hardship(network)
    const toOne = { stanza: 'message', direction: 'out', attrs: { participant: '' } } as const
    hardship.#others.push(await hardship.#rule({ ...toOne, probability: NAMED_BY_NUMBER }, { address: 'pn' }))
    for (const type of ['', 'inactive']) await hardship.#loseReceipts('in', type, RECEIPTS_LOST)
    for (const type of ['', 'read']) await hardship.#loseReceipts('out', type, RECIPIENTS_RECEIPTS_LOST)
    return hardship
  }

  /** Whether the next message to an instance cannot be decrypted. */
  spoils(random: Random): boolean {
    return random.next() < UNDECRYPTABLE
  }

  /** Whoever looks up `number` finds `phone`. */
  async spellTwice(number: string, phone: string): Promise<void> {
    await this.#network.misbehave({ kind: 'look_up', number, finds: phone })
  }

  /** Messages of the contact name it by LID alone. */
  async hideNumber(contact: string): Promise<void> {
    const rule = await this.#rule(
      { stanza: 'message', direction: 'out', contact },
      { address: 'lid', alternate: false },
    )
    this.#hidden.set(contact, rule)
    this.#hiddenCount += 1
  }

  /** They name its number too. */
  async showNumber(contact: string): Promise<void> {
    const rule = this.#hidden.get(contact)
    if (rule !== undefined) await this.#network.misbehave({ kind: 'remove_rule', id: rule })
    this.#hidden.delete(contact)
  }

  /** WhatsApp behaves well again; people keep their two numbers. @returns how often what happened */
  async end(): Promise<HardshipCounts> {
    const { rules } = await this.#network.scenario()
    const applied = (ids: readonly number[]) =>
      rules.filter(({ id }) => ids.includes(id)).reduce((sum, rule) => sum + rule.applied, 0)
    const counts = {
      receiptsLost: applied(this.#receiptsLost),
      hidden: this.#hiddenCount,
    }
    const all = [...this.#receiptsLost, ...this.#others, ...this.#hidden.values()]
    for (const id of all) await this.#network.misbehave({ kind: 'remove_rule', id })
    return counts
  }

  async #loseReceipts(direction: 'in' | 'out', type: string, probability: number): Promise<void> {
    const when = { stanza: 'receipt', direction, attrs: { type }, probability }
    this.#receiptsLost.push(await this.#rule(when, 'drop'))
  }

  async #rule(when: When, action: Action): Promise<number> {
    const { rule } = await this.#network.misbehave({ kind: 'rule', rule: { when, do: action } })
    if (rule === undefined) throw new Error('The network has not set the rule.')
    return rule
  }
}
