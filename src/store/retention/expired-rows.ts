import { sql } from 'kysely'
import { HAS_DELIVERIES, WAS_DELETED_WITH_INSTANCE } from '../endpoints/stored-endpoints.ts'
import { hasDeliveries } from '../endpoints/stored-operator-endpoints.ts'
import type { Transaction } from '../engine/backend.ts'
import { type Operation, oneByOne } from '../engine/operation.ts'
import type { Statements } from '../engine/statement.ts'
import { outlivesExpiry } from '../messages/idempotency-keys.ts'
import { ORDER_LIVES_MS } from '../numbers/numbers.ts'

/** Idempotency keys and look-ups of numbers in one commit. */
const EXPIRED_STEP = 500
/**
 * How long an idempotency key stays after it has expired. If the clock is ahead by less than this, no key is erased that
 * is valid again when the clock has been corrected.
 */
const EXPIRED_KEY_MS = 24 * 60 * 60_000
/** How long a linking link is listed after it has expired. */
const ENDED_HANDOUT_MS = 24 * 60 * 60_000

/**
 * Idempotency keys expire by the store's clock and are erased a day later, both by this clock and by the caller's, which
 * does not jump during a round. Look-ups of numbers expire by the caller's clock. Deleted endpoints are erased when their
 * deliveries have ended, those of a deleted instance with the instance.
 */
export function eraseExpiredOperation(statements: Statements): Operation<{ now: number }, number> {
  const { db, now, dialect } = statements
  // Skips rows that another node is erasing.
  const lock = dialect.lock(sql`for update skip locked`)
  const erase = async (tx: Transaction, table: string, column: string, at: unknown, but = sql<boolean>`1 = 0`) => {
    const key = sql`instance_id, ${sql.ref(column)}`
    const removal = sql`with expired as (select ${key} from ${sql.table(table)} where expires_at <= ${at} and not ${but}
      limit ${sql.lit(EXPIRED_STEP)} ${lock})
      delete from ${sql.table(table)} where (${key}) in (select ${key} from expired) returning instance_id`
    return (await tx.query({ compile: () => removal.compile(db) })).length
  }
  const idle = db
    .deleteFrom('endpoints')
    .where('deleted_at', 'is not', null)
    .where(({ not }) => not(HAS_DELIVERIES))
    .where(({ not }) => not(WAS_DELETED_WITH_INSTANCE))
    .returning('instance_id')
  const idleOperators = db
    .deleteFrom('operator_endpoints')
    .where('deleted_at', 'is not', null)
    .where(({ not }) => not(hasDeliveries()))
    .returning('id')
  const forgotten = db
    .deleteFrom('number_orders')
    .where('ordered_at', '<', sql<number>`${now} - ${sql.lit(ORDER_LIVES_MS)}`)
    .returning('instance_id')
  const ended = db
    .deleteFrom('handouts')
    .where('expires_at', '<', sql<number>`${now} - ${sql.lit(ENDED_HANDOUT_MS)}`)
    .returning('instance_id')
  return oneByOne(
    'retention.expired',
    () => '',
    async (tx, input) => {
      const earlier = sql`case when ${now} < ${input.now} then ${now} else ${input.now} end`
      const keysBefore = sql<number>`(${earlier} - ${sql.lit(EXPIRED_KEY_MS)})`
      return (
        (await erase(tx, 'idempotency_keys', 'key', keysBefore, outlivesExpiry({ now: keysBefore }))) +
        (await erase(tx, 'numbers', 'number', input.now)) +
        (await tx.query(idle)).length +
        (await tx.query(idleOperators)).length +
        (await tx.query(ended)).length +
        (await tx.query(forgotten)).length
      )
    },
  )
}
