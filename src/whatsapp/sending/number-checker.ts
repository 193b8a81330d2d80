import { Turns } from '../../kit/turns.ts'
import type { Hints } from '../../store/hints.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { Numbers } from '../../store/numbers/numbers.ts'
import { untilStored } from '../../store/until-stored.ts'
import type { Link } from '../baileys/link.ts'
import type { AddressBook } from './address-book.ts'

/** Concurrent look-ups of one instance, in addition to those of its messages' recipients. */
const AT_ONCE = 5
/** Nothing is looked up for this long after WhatsApp has limited the rate of queries. */
const PAUSE_MS = 60_000

interface NumberCheckerOptions {
  lease: Lease
  store: { numbers: Numbers; hints: Hints }
  addresses: Pick<AddressBook, 'findNumber' | 'forget'>
  now: () => number
  signal: AbortSignal
  onFailed(error: unknown): void
}

/** Looks up the numbers that callers of the API wait for, while the instance is connected. */
export class NumberChecker {
  readonly #options: NumberCheckerOptions
  readonly #turns = new Turns(AT_ONCE)
  readonly #underWay = new Set<string>()
  #link: Pick<Link, 'lookUp' | 'closed'> | null = null
  #pausedUntil = 0

  constructor(options: NumberCheckerOptions) {
    this.#options = options
  }

  /** @returns a function that stops it */
  start(): () => void {
    const { store, lease } = this.#options
    return store.hints.on('numbers', (_, __, about) => about !== 'settled' && this.#wake(), lease.instanceId)
  }

  attach(link: Pick<Link, 'lookUp' | 'closed'>): void {
    this.#link = link
    this.#wake()
  }

  detach(): void {
    this.#link = null
  }

  #wake(): void {
    if (this.#link !== null) this.#checkAll().catch(error => this.#options.onFailed(error))
  }

  async #checkAll(): Promise<void> {
    const { store, lease, signal } = this.#options
    const open = await untilStored(() => store.numbers.listOrders(lease.instanceId), signal)
    const due = open.filter(number => !this.#underWay.has(number))
    for (const number of due) this.#underWay.add(number)
    await Promise.all(due.map(number => this.#check(number).finally(() => this.#underWay.delete(number))))
  }

  /** The order is removed even without an answer. The caller who placed it then learns that the result is unknown. */
  async #check(number: string): Promise<void> {
    const { store, lease, signal, addresses, now } = this.#options
    if (!(await this.#turns.take(signal))) return
    try {
      const link = this.#link
      if (link === null) return
      if (now() >= this.#pausedUntil) {
        // The row was missing when the caller asked. A remembered answer would write no new row.
        addresses.forget(number)
        const found = await addresses.findNumber(number, link)
        if (found.kind === 'unanswered' && found.why === 'rate_limited') this.#pausedUntil = now() + PAUSE_MS
      }
      await untilStored(() => store.numbers.settleOrder(lease, number), signal)
    } finally {
      this.#turns.end()
    }
  }
}
