import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { firstMessageId, type InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import type { RowsStatement } from '../engine/statement.ts'
import { messageIds } from '../messages/message-ids.ts'

/** Instances counted by one query. Other calls run in between. */
const WINDOW = 25

type TrafficRow = { instance_id: InstanceId; count: number }

/** Counts the messages of each instance since a moment, except queued ones. */
export class Traffic {
  readonly #core: Core
  readonly #statement: RowsStatement<{ instance_id: string; first: string }, TrafficRow>
  #last: { since: number; counts: Promise<ReadonlyMap<InstanceId, number>> } | null = null

  constructor(core: Core) {
    this.#core = core
    const settled = messageIds(sql`input.instance_id`, sql`id >= input.first`, 'sent')
    const received = sql`select count(*) from incoming_messages as received
      where received.instance_id = input.instance_id and received.id >= input.first`
    const count = sql<number>`(select count(*) from ${settled} as settled_ids) + (${received})`
    this.#statement = core.statements.rows({ instance_id: 'text', first: 'text' }, db =>
      db.selectFrom('input').select(['input.instance_id', count.as('count')]),
    )
  }

  /** Calls with the same moment share one count. */
  since(since: number): Promise<ReadonlyMap<InstanceId, number>> {
    if (this.#last?.since === since) return this.#last.counts
    const last = { since, counts: this.#count(since) }
    this.#last = last
    last.counts.catch(() => {
      if (this.#last === last) this.#last = null
    })
    return last.counts
  }

  async #count(since: number): Promise<ReadonlyMap<InstanceId, number>> {
    const { reader, statements } = this.#core
    const ids = await reader.query(statements.db.selectFrom('instances').select('id').where('deleted_at', 'is', null))
    const first = firstMessageId(since)
    const counts = new Map<InstanceId, number>()
    for (let start = 0; start < ids.length; start += WINDOW) {
      const window = ids.slice(start, start + WINDOW).map(({ id }) => ({ instance_id: id, first }))
      for (const row of await reader.each(this.#statement, window)) counts.set(row.instance_id, Number(row.count))
      await setImmediate()
    }
    return counts
  }
}
