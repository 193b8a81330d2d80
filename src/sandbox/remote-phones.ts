import { randomUUID } from 'node:crypto'
import type { InstanceId } from '../domain/ids.ts'
import { REFUSALS, Refusal, type RefusalCode } from '../domain/refusal.ts'
import type { Hints } from '../store/hints.ts'
import type { Lease } from '../store/leases/leases.ts'
import type { PhoneOrders } from '../store/sandbox/phone-orders.ts'

/** What a simulated contact writes to a sandbox instance. */
export interface SandboxMessage {
  from: string
  text: string
  group?: string | undefined
  name?: string | undefined
}

/** What can be asked of a simulated phone. */
export type PhoneOrder = { kind: 'write'; message: SandboxMessage } | { kind: 'switch'; on: boolean } | { kind: 'look' }

/** `id`: WhatsApp's of what was written. */
export interface PhoneReport {
  on: boolean
  id?: string
}

type Answer = { kind: 'done'; report: PhoneReport } | { kind: 'refused'; code: RefusalCode; message: string }

const ANSWER_WITHIN_MS = 5_000
/** Behind the hints, which may be lost. */
const LOOK_EVERY_MS = 500

/**
 * Asks the node that runs the simulated phone, through the store.
 * @throws Refusal as that node gave it; `service_unavailable` when nobody answers in time: the order is then carried out
 * late or never
 */
export async function askOwner(
  { orders, hints }: { orders: PhoneOrders; hints: Hints },
  instanceId: InstanceId,
  order: PhoneOrder,
): Promise<PhoneReport> {
  const id = randomUUID()
  const body = JSON.stringify(order)
  const giveUpAt = performance.now() + ANSWER_WITHIN_MS
  let wake = () => {}
  const stopListening = hints.on('phone', (_, origin) => origin === 'elsewhere' && wake(), instanceId)
  try {
    while (performance.now() < giveUpAt) {
      const hinted = new Promise<void>(resolve => {
        const timer = setTimeout(resolve, LOOK_EVERY_MS)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      await orders.leave(instanceId, id, body)
      await hinted
      const answer = await orders.takeAnswer(instanceId, id)
      if (answer !== null) return open(JSON.parse(answer))
    }
  } finally {
    stopListening()
    wake()
  }
  throw new Refusal('service_unavailable')
}

function open(answer: Answer): PhoneReport {
  if (answer.kind === 'done') return answer.report
  throw new Refusal(answer.code, answer.message)
}

export interface OrderTakerOptions {
  lease: Lease
  orders: PhoneOrders
  hints: Hints
  obey(order: PhoneOrder): Promise<PhoneReport>
  onError(error: unknown): void
}

/** Carries out what other nodes ask of the phone, one order after the other, until it is told to end. */
export class OrderTaker {
  readonly #options: OrderTakerOptions
  readonly #stopListening: () => void
  #work: Promise<void> = Promise.resolve()
  #wanted = false
  #ended = false

  constructor(options: OrderTakerOptions) {
    this.#options = options
    this.#stopListening = options.hints.on('phone', () => this.#want(), options.lease.instanceId)
    this.#want()
  }

  async end(): Promise<void> {
    this.#ended = true
    this.#stopListening()
    await this.#work
  }

  #want(): void {
    if (this.#wanted || this.#ended) return
    this.#wanted = true
    this.#work = this.#work
      .then(() => {
        this.#wanted = false
        return this.#takeAll()
      })
      .catch(error => this.#options.onError(error))
  }

  /** Taken first, then carried out: an order is followed once or never. */
  async #takeAll(): Promise<void> {
    const { lease, orders, obey } = this.#options
    if (this.#ended) return
    for (const { id, body } of await orders.take(lease)) {
      const answer = await obey(JSON.parse(body)).then(
        (report): Answer => ({ kind: 'done', report }),
        (error: unknown): Answer => {
          const code = error instanceof Refusal ? error.code : 'internal_error'
          if (code === 'internal_error') this.#options.onError(error)
          return { kind: 'refused', code, message: error instanceof Refusal ? error.message : REFUSALS[code][1] }
        },
      )
      await orders.answer(lease, id, JSON.stringify(answer))
    }
  }
}
