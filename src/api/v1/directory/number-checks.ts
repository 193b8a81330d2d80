import type { InstanceId } from '../../../domain/ids.ts'
import type { PhoneNumber } from '../../../domain/recipients/recipient.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { waitAtMost } from '../../../kit/deadline.ts'
import { shareCalls } from '../../../kit/share-calls.ts'
import { type LookedUpNumber, SETTLED } from '../../../store/numbers/numbers.ts'
import type { Store } from '../../../store/store.ts'

/** The wait for WhatsApp's answers. The whole call takes at most 10 s. */
const ANSWER_WITHIN_MS = 9_000
/** Hints may be lost. */
const POLL_EVERY_MS = 500

interface NumberChecksOptions {
  store: Pick<Store, 'numbers' | 'hints'>
  /** Unknown numbers that an instance may have looked up in a day. */
  perDay: number
  now: () => number
}

/** Orders the look-up of unknown numbers from the node that owns the instance. Orders and answers are rows. */
export class NumberChecks {
  readonly #options: NumberChecksOptions
  /** Calls that wait for the same instance read its orders together. */
  readonly #readers = new Map<InstanceId, { read: () => Promise<ReadonlySet<PhoneNumber>>; users: number }>()

  constructor(options: NumberChecksOptions) {
    this.#options = options
  }

  /**
   * Resolves within 10 s. A number that could not be looked up is missing from the result.
   * @param canAsk false: only earlier answers are used
   * @throws Refusal `lookup_budget_spent`
   */
  async check(
    instanceId: InstanceId,
    numbers: readonly PhoneNumber[],
    canAsk: boolean,
  ): Promise<ReadonlyMap<PhoneNumber, LookedUpNumber>> {
    const { store, perDay, now } = this.#options
    const known = await store.numbers.findMany(instanceId, numbers, now())
    const unknown = numbers.filter(number => !known.has(number))
    if (unknown.length === 0 || !canAsk) return known
    const order = await store.numbers.order(instanceId, unknown, perDay)
    if (order.kind === 'spent') {
      const message = `${unknown.length} of the numbers are unknown, and ${order.left} more may be looked up today.`
      throw new Refusal('lookup_budget_spent', message, { retryAfterSeconds: Math.ceil(order.renewsInMs / 1_000) })
    }
    await this.#untilSettled(instanceId, unknown)
    return store.numbers.findMany(instanceId, numbers, now())
  }

  async #untilSettled(instanceId: InstanceId, numbers: readonly PhoneNumber[]): Promise<void> {
    const { store } = this.#options
    const giveUpAt = performance.now() + ANSWER_WITHIN_MS
    const reader = this.#readers.get(instanceId) ?? { users: 0, read: this.#createReader(instanceId) }
    this.#readers.set(instanceId, reader)
    reader.users += 1
    let wake = () => {}
    const onHint = (_: InstanceId, origin: string, about?: string) => {
      if (origin === 'elsewhere' || about === SETTLED) wake()
    }
    const stopListening = store.hints.on('numbers', onHint, instanceId)
    try {
      while (performance.now() < giveUpAt) {
        const hinted = Promise.withResolvers<void>()
        wake = hinted.resolve
        const open = await reader.read()
        if (!numbers.some(number => open.has(number))) return
        await waitAtMost(Math.min(POLL_EVERY_MS, giveUpAt - performance.now()), hinted.promise)
      }
    } finally {
      stopListening()
      reader.users -= 1
      if (reader.users === 0) this.#readers.delete(instanceId)
    }
  }

  /** Reads the open orders, and repeats their hint from time to time. */
  #createReader(instanceId: InstanceId): () => Promise<ReadonlySet<PhoneNumber>> {
    const { numbers } = this.#options.store
    let remindedAt = performance.now()
    return shareCalls(async () => {
      const open = await numbers.listOrders(instanceId)
      if (open.length > 0 && performance.now() - remindedAt >= POLL_EVERY_MS) {
        remindedAt = performance.now()
        numbers.remind(instanceId)
      }
      return new Set(open)
    })
  }
}
