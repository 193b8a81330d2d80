import { type RawBuilder, sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import type { Transaction } from './backend.ts'
import type { Database } from './schema/database.ts'
import type { Statements } from './statement.ts'

const STEP = 500
/** A large group has 100 KB. */
const GROUPS_STEP = 20

/**
 * Erases the rows of an instance in small commits: a single statement for all of them would block the process or exceed a time
 * limit of the database.
 * @param key the key columns of the table
 * @returns `more` if rows may be left, `rest` if these were the last rows, `none` if there was no row
 */
export async function eraseSome<T extends keyof Database & string>(
  tx: Transaction,
  { db }: Statements,
  instanceId: InstanceId,
  table: T,
  key: readonly string[],
  condition: RawBuilder<unknown> = sql`true`,
): Promise<'more' | 'rest' | 'none'> {
  const step = table === 'groups' ? GROUPS_STEP : STEP
  const columns = sql.join(key.map(column => sql.ref(column)))
  const removal = sql<{ instance_id: string }>`delete from ${sql.table(table)} where (${columns}) in
    (select ${columns} from ${sql.table(table)} where instance_id = ${instanceId} and ${condition} limit ${sql.lit(step)})
    returning instance_id`
  const { length } = await tx.query({ compile: () => removal.compile(db) })
  return length === step ? 'more' : length > 0 ? 'rest' : 'none'
}
