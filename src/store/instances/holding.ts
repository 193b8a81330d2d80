import { type RawBuilder, sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { EventLoopBudget } from '../../kit/event-loop-budget.ts'
import type { Core } from '../engine/core.ts'
import { messageIds } from '../messages/message-ids.ts'
import { type Held, MAX_HOLDING } from './instances.ts'

/** Instances checked by one query. */
const WINDOW = 500
/** A query takes about a millisecond. During many concurrent searches, other calls run in between. */
const queries = new EventLoopBudget(1)

/**
 * Finds the instances that hold it. Each instance is looked up through an index.
 * @param ids only these instances
 */
export async function findHolding(
  { reader, statements }: Core,
  held: Held,
  ids: readonly InstanceId[] | null,
): Promise<InstanceId[]> {
  const run = async <O>(query: RawBuilder<O>) => {
    await queries.take()
    return reader.query<O>({ compile: () => query.compile(statements.db) })
  }
  const isAmong = ids === null ? sql`true` : sql`i.id in (${sql.join([...ids, ''])})`
  const found: InstanceId[] = []
  for (let after = 0; ; ) {
    const [window] = await run(sql<{ last: number | null; count: number }>`select max(seq) as last, count(*) as count
      from (select seq from instances as i where seq > ${after} and ${isAmong} order by seq limit ${sql.lit(WINDOW)})
      as instances_of_window`)
    const last = Number(window?.last ?? 0)
    const rows = await run(sql<{ id: InstanceId }>`select i.id from instances as i
      where i.seq > ${after} and i.seq <= ${last} and ${isAmong} and i.deleted_at is null and ${condition(held)}
      order by i.seq limit ${sql.lit(MAX_HOLDING)}`)
    found.push(...rows.map(({ id }) => id))
    if (Number(window?.count ?? 0) < WINDOW || found.length >= MAX_HOLDING) return found.slice(0, MAX_HOLDING)
    after = last
  }
}

function condition(held: Held): RawBuilder<boolean> {
  const ofInstance = (table: 'incoming_messages' | 'events', id: string) =>
    sql`exists (select 1 from ${sql.table(table)} as t where t.instance_id = i.id and t.id = ${id})`
  const ofNumber = (table: 'contacts' | 'numbers', number: string) =>
    sql`exists (select 1 from ${sql.table(table)} as t where t.instance_id = i.id and t.number = ${number})`
  switch (held.kind) {
    case 'message': {
      const ids = messageIds(sql`i.id`, sql<boolean>`id = ${held.id}`)
      return sql`(exists (select 1 from ${ids} as ids) or ${ofInstance('incoming_messages', held.id)})`
    }
    case 'event':
      return sql`${ofInstance('events', held.id)}`
    case 'number':
      return sql`(${ofNumber('contacts', held.number)} or ${ofNumber('numbers', held.number)})`
  }
}
