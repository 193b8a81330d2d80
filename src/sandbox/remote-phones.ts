import { randomUUID } from 'node:crypto'
import type { InstanceId } from '../domain/ids.ts'
import type { ContactMessage } from '../domain/incoming-message.ts'
import { REFUSALS, Refusal, type RefusalCode } from '../domain/refusal.ts'
import { waitAtMost } from '../kit/deadline.ts'
import type { Hints } from '../store/hints.ts'
import type { Lease } from '../store/leases/leases.ts'
import { ORDER_VALID_FOR_MS, type PhoneOrders } from '../store/sandbox/phone-orders.ts'

/** A request to a simulated phone. `look` only reads whether it is on. Nodes of other versions read these names too. */
export type PhoneOrder = { kind: 'write'; message: ContactMessage } | { kind: 'switch'; on: boolean } | { kind: 'look' }

export interface PhoneReport {
  on: boolean
  /** WhatsApp's ID of the written message. */
  id?: string
}

type Answer = { kind: 'done'; report: PhoneReport } | { kind: 'refused'; code: RefusalCode; message: string }

/** Polling makes up for lost hints. */
const POLL_EVERY_MS = 500

/**
 * Passes an order through the store to the node that runs the simulated phone.
 * @throws Refusal of that node, or `service_unavailable` if there is no answer in time. The order may still have been
 * executed, but it is not executed much later.
 */
export async function askOwner(
  { orders, hints }: { orders: PhoneOrders; hints: Hints },
  instanceId: InstanceId,
  order: PhoneOrder,
): Promise<PhoneReport> {
  const id = randomUUID()
  const body = JSON.stringify(order)
  const giveUpAt = performance.now() + ORDER_VALID_FOR_MS
  let wake = () => {}
  const stopListening = hints.on('phone', (_, origin) => origin === 'elsewhere' && wake(), instanceId)
  try {
    while (performance.now() < giveUpAt) {
      const hinted = Promise.withResolvers<void>()
      wake = hinted.resolve
      const pause = waitAtMost(POLL_EVERY_MS, hinted.promise)
      await orders.leave(instanceId, id, body)
      await pause
      const answer = await orders.takeAnswer(instanceId, id)
      if (answer !== null) return reportOf(JSON.parse(answer))
    }
  } finally {
    stopListening()
    wake()
  }
  throw new Refusal('service_unavailable')
}

function reportOf(answer: Answer): PhoneReport {
  if (answer.kind === 'done') return answer.report
  throw new Refusal(answer.code, answer.message)
}

interface OrderTakerOptions {
  lease: Lease
  orders: PhoneOrders
  hints: Hints
  execute(order: PhoneOrder): Promise<PhoneReport>
  onError(error: unknown): void
}

/** Executes the requests that other nodes make to this phone, one after the other, until `end`. */
export class OrderTaker {
  readonly #options: OrderTakerOptions
  readonly #stopListening: () => void
  #work: Promise<void> = Promise.resolve()
  #scheduled = false
  #ended = false

  constructor(options: OrderTakerOptions) {
    this.#options = options
    this.#stopListening = options.hints.on('phone', () => this.#schedule(), options.lease.instanceId)
    this.#schedule()
  }

  async end(): Promise<void> {
    this.#ended = true
    this.#stopListening()
    await this.#work
  }

  #schedule(): void {
    if (this.#scheduled || this.#ended) return
    this.#scheduled = true
    this.#work = this.#work
      .then(() => {
        this.#scheduled = false
        return this.#takeAll()
      })
      .catch(error => this.#options.onError(error))
  }

  /** Removes each order from the store before it is executed, so that it is executed at most once. */
  async #takeAll(): Promise<void> {
    const { lease, orders, execute } = this.#options
    if (this.#ended) return
    for (const { id, body } of await orders.take(lease)) {
      const answer = await execute(JSON.parse(body)).then(
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
