import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import { fencedOneByOne, oneByOne } from '../engine/operation.ts'
import type { Lease } from '../leases/leases.ts'
import { ORDER_VALID_FOR_MS, type PhoneOrders } from './phone-orders.ts'

/** Orders and answers are deleted after this time. Their senders wait for a much shorter time. */
const FORGOTTEN_AFTER_MS = 60_000

export class StoredPhoneOrders implements PhoneOrders {
  readonly #core: Core
  readonly #operations

  constructor(core: Core) {
    this.#core = core
    this.#operations = operations(core)
  }

  async leave(instanceId: InstanceId, id: string, body: string): Promise<void> {
    await this.#core.write(this.#operations.leave, { instanceId, id, body })
    this.#core.hints.publish('phone', instanceId)
  }

  take(lease: Lease): Promise<{ id: string; body: string }[]> {
    return this.#core.write(this.#operations.take, { lease })
  }

  async answer(lease: Lease, id: string, answer: string): Promise<void> {
    await this.#core.write(this.#operations.answer, { lease, id, answer })
    this.#core.hints.publish('phone', lease.instanceId)
  }

  takeAnswer(instanceId: InstanceId, id: string): Promise<string | null> {
    return this.#core.write(this.#operations.takeAnswer, { instanceId, id })
  }
}

function operations({ statements }: Core) {
  const { db, now } = statements
  const ofInstance = ({ instanceId }: { instanceId: InstanceId }) => instanceId

  // The phone may refuse an order, so the audit records the call only after it has succeeded.
  return {
    leave: oneByOne(
      'phoneOrders.leave',
      ofInstance,
      async (tx, { instanceId, id, body }: { instanceId: InstanceId; id: string; body: string }) => {
        await tx.query(
          db
            .deleteFrom('phone_orders')
            .where('instance_id', '=', instanceId)
            .where('left_at', '<', sql<number>`${now} - ${sql.lit(FORGOTTEN_AFTER_MS)}`),
        )
        await tx.query(
          db
            .insertInto('phone_orders')
            .values({ instance_id: instanceId, id, left_at: now, body })
            .onConflict(oc => oc.columns(['instance_id', 'id']).doNothing()),
        )
      },
      false,
    ),

    take: fencedOneByOne('phoneOrders.take', async (tx, { lease }: { lease: Lease }) => {
      // The caller of an old order has got 503 and may have repeated the call. An order from the future is old too: it was left
      // before the clock was set back.
      await tx.query(
        db
          .deleteFrom('phone_orders')
          .where('instance_id', '=', lease.instanceId)
          .where('body', 'is not', null)
          .where(sql<boolean>`abs(left_at - ${now}) > ${sql.lit(ORDER_VALID_FOR_MS)}`),
      )
      const rows = await tx.query(
        db
          .selectFrom('phone_orders')
          .select(['id', 'body', 'left_at'])
          .where('instance_id', '=', lease.instanceId)
          .where('body', 'is not', null)
          .orderBy('left_at')
          .orderBy('id'),
      )
      if (rows.length > 0) {
        await tx.query(
          db
            .updateTable('phone_orders')
            .set({ body: null })
            .where('instance_id', '=', lease.instanceId)
            .where(
              'id',
              'in',
              rows.map(({ id }) => id),
            ),
        )
      }
      return rows.map(({ id, body }) => ({ id, body: body! }))
    }),

    answer: fencedOneByOne(
      'phoneOrders.answer',
      async (tx, { lease, id, answer }: { lease: Lease; id: string; answer: string }) => {
        await tx.query(
          db
            .updateTable('phone_orders')
            .set({ answer })
            .where('instance_id', '=', lease.instanceId)
            .where('id', '=', id),
        )
      },
    ),

    takeAnswer: oneByOne(
      'phoneOrders.takeAnswer',
      ofInstance,
      async (tx, { instanceId, id }: { instanceId: InstanceId; id: string }) => {
        const [row] = await tx.query(
          db
            .deleteFrom('phone_orders')
            .where('instance_id', '=', instanceId)
            .where('id', '=', id)
            .where('answer', 'is not', null)
            .returning('answer'),
        )
        return row?.answer ?? null
      },
      false,
    ),
  }
}
