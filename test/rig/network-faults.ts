import type { Action, When } from '@pombal/simulator'
import type { Network } from '../network.ts'
import type { Random } from './random.ts'

/** The share of messages to an instance that cannot be decrypted until the instance requests them again. */
const UNDECRYPTABLE = 0.05
/** The shares of an instance's and of its recipients' receipts that are lost. WhatsApp redelivers at the next login. */
const RECEIPTS_LOST = 0.2
const RECIPIENTS_RECEIPTS_LOST = 0.1
/** The share of direct messages to an instance that name the sender by number instead of LID. Groups always use the LID. */
const NAMED_BY_NUMBER = 0.15

export interface NetworkFaultCounts {
  /** Lost receipts of instances and recipients. */
  receiptsLost: number
  /** Contacts that WhatsApp named by LID alone for some time. */
  hidden: number
}

/**
 * Faults of the simulated WhatsApp that affect all instances of a run: messages that cannot be decrypted at first, lost receipts,
 * after which messages are redelivered at the next login, and senders named sometimes by number and sometimes by LID.
 */
export class NetworkFaults {
  readonly #network: Network
  readonly #receiptsLost: number[] = []
  readonly #others: number[] = []
  readonly #hidden = new Map<string, number>()
  #hiddenCount = 0

  private constructor(network: Network) {
    this.#network = network
  }

  static async begin(network: Network, random: Random): Promise<NetworkFaults> {
    await network.misbehave({ kind: 'seed', seed: random.integer(0, 2 ** 31) })
    const networkFaults = new NetworkFaults(network)
    const toOne = { stanza: 'message', direction: 'out', attrs: { participant: '' } } as const
    networkFaults.#others.push(await networkFaults.#rule({ ...toOne, probability: NAMED_BY_NUMBER }, { address: 'pn' }))
    for (const type of ['', 'inactive']) await networkFaults.#loseReceipts('in', type, RECEIPTS_LOST)
    for (const type of ['', 'read']) await networkFaults.#loseReceipts('out', type, RECIPIENTS_RECEIPTS_LOST)
    return networkFaults
  }

  /** Whether to make the next message to an instance undecryptable. */
  makesUndecryptable(random: Random): boolean {
    return random.next() < UNDECRYPTABLE
  }

  /** A look-up of `number` finds `phone`. */
  async addSpelling(number: string, phone: string): Promise<void> {
    await this.#network.misbehave({ kind: 'look_up', number, finds: phone })
  }

  /** From now on messages name the contact by LID alone. */
  async hideNumber(contact: string): Promise<void> {
    const rule = await this.#rule(
      { stanza: 'message', direction: 'out', contact },
      { address: 'lid', alternate: false },
    )
    this.#hidden.set(contact, rule)
    this.#hiddenCount += 1
  }

  /** From now on messages contain the contact's number too. */
  async showNumber(contact: string): Promise<void> {
    const rule = this.#hidden.get(contact)
    if (rule !== undefined) await this.#network.misbehave({ kind: 'remove_rule', id: rule })
    this.#hidden.delete(contact)
  }

  /** Removes the faults, except the second spellings of numbers. @returns how often each fault occurred */
  async end(): Promise<NetworkFaultCounts> {
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
    if (rule === undefined) throw new Error('The network did not set the rule.')
    return rule
  }
}
