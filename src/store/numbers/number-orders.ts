import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import type { PhoneNumber } from '../../domain/recipients/recipient.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { fencedOneByOne, oneByOne } from '../engine/operation.ts'
import type { Lease } from '../leases/leases.ts'
import { type CheckOrder, ORDER_LIVES_MS, SETTLED } from './numbers.ts'

const DAY_MS = 24 * 60 * 60_000

interface OrderInput {
  instanceId: InstanceId
  numbers: readonly PhoneNumber[]
  perDay: number
}

/** Look-ups of numbers that a caller waits for, and their budget. */
export class NumberOrders {
  readonly #core: Core
  readonly #order
  readonly #settle

  constructor(core: Core) {
    this.#core = core
    this.#order = oneByOne(
      'numbers.order',
      (input: OrderInput) => input.instanceId,
      (tx, input) => this.#write(tx, input),
      ({ kind }) => kind === 'ordered',
    )
    this.#settle = fencedOneByOne('numbers.settle', async (tx, { lease, number }: { lease: Lease; number: string }) => {
      await tx.query(this.#ofInstance(lease.instanceId).where('number', '=', number))
    })
  }

  async order(instanceId: InstanceId, numbers: readonly PhoneNumber[], perDay: number): Promise<CheckOrder> {
    const outcome = await this.#core.write(this.#order, { instanceId, numbers, perDay })
    if (outcome.kind === 'ordered') this.remind(instanceId)
    return outcome
  }

  remind(instanceId: InstanceId): void {
    this.#core.hints.publish('numbers', instanceId)
  }

  async listOpen(instanceId: InstanceId): Promise<PhoneNumber[]> {
    const { reader, statements } = this.#core
    const rows = await reader.query(
      statements.db
        .selectFrom('number_orders')
        .select('number')
        .where('instance_id', '=', instanceId)
        .where('ordered_at', '>', sql<number>`${statements.now} - ${sql.lit(ORDER_LIVES_MS)}`)
        .orderBy('ordered_at'),
    )
    return rows.map(({ number }) => number)
  }

  async settle(lease: Lease, number: PhoneNumber): Promise<void> {
    await this.#core.write(this.#settle, { lease, number })
    this.#core.hints.publish('numbers', lease.instanceId, SETTLED)
  }

  async #write(tx: Transaction, { instanceId, numbers, perDay }: OrderInput): Promise<CheckOrder> {
    const { db, now } = this.#core.statements
    const { at, used } = await this.#lockBudget(tx, instanceId)
    await tx.query(this.#ofInstance(instanceId).where('ordered_at', '<=', at - ORDER_LIVES_MS))
    const open = await tx.query(
      db
        .selectFrom('number_orders')
        .select('number')
        .where('instance_id', '=', instanceId)
        .where('number', 'in', numbers),
    )
    const known = new Set(open.map(({ number }) => number))
    const fresh = [...new Set(numbers)].filter(number => !known.has(number))
    if (used + fresh.length > perDay)
      return { kind: 'spent', left: Math.max(0, perDay - used), renewsInMs: DAY_MS - (at % DAY_MS) }
    if (fresh.length === 0) return { kind: 'ordered' }
    await tx.query(
      db
        .updateTable('number_budgets')
        .set({ used: used + fresh.length })
        .where('instance_id', '=', instanceId),
    )
    await tx.query(
      db
        .insertInto('number_orders')
        .values(fresh.map(number => ({ instance_id: instanceId, number, ordered_at: now }))),
    )
    return { kind: 'ordered' }
  }

  /** The numbers used from today's budget. The row is locked until the commit. */
  async #lockBudget(tx: Transaction, instance_id: InstanceId): Promise<{ at: number; used: number }> {
    const { now } = this.#core.statements
    const today = sql<number>`${now} / ${sql.lit(DAY_MS)}`
    const locked = sql<{ used: number; at: number }>`
      insert into number_budgets as b (instance_id, day, used) values (${instance_id}, ${today}, 0)
      on conflict (instance_id) do update set day = excluded.day,
        used = case when b.day = excluded.day then b.used else 0 end
      returning used, ${now} as at`
    const [row] = await tx.query({ compile: () => locked.compile(this.#core.statements.db) })
    return { at: Number(row?.at), used: Number(row?.used) }
  }

  #ofInstance(instanceId: InstanceId) {
    return this.#core.statements.db.deleteFrom('number_orders').where('instance_id', '=', instanceId)
  }
}
