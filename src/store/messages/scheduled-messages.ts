import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import type { DatabaseKind } from '../engine/database-kind.ts'
import { fencedOneByOne } from '../engine/operation.ts'
import { IS_SCHEDULED } from '../engine/schema/messages.ts'
import type { RowOf, Statements } from '../engine/statement.ts'
import type { Lease } from '../leases/leases.ts'

/** Scheduled messages released by one commit. */
const RELEASED_AT_ONCE = 100

/** Releases scheduled messages: from then on they are queued like all others. */
export class ScheduledMessages {
  readonly #core: Core
  readonly #release

  constructor(core: Core) {
    this.#core = core
    this.#release = releaseOperation(core.statements)
  }

  /** @returns when the next scheduled message is due; null if there is none */
  async releaseDue(lease: Lease, now: number): Promise<number | null> {
    const [first] = await this.#core.reader.query(firstScheduled(this.#core.statements, lease.instanceId))
    if (!first?.not_before || first.not_before > now) return first?.not_before ?? null
    for (;;) {
      const { released, next } = await this.#core.write(this.#release, { lease, now })
      if (released > 0) this.#core.hints.publish('queued', lease.instanceId)
      if (released < RELEASED_AT_ONCE) return next
    }
  }
}

/** The columns of a message that was never prepared. Add every new column for content, or SQLite loses its value. */
const MOVED = {
  instance_id: 'text',
  id: 'text',
  recipient: 'text',
  text: 'text',
  whatsapp_id: 'text',
  state: 'text',
  created_at: 'integer',
  media_id: 'text?',
  file: 'text?',
  extras: 'text?',
  not_before: 'integer?',
  traceparent: 'text?',
} as const

/** Assigns the next numbers of the queue to the scheduled messages whose time has come. */
function releaseOperation(statements: Statements) {
  const columns = Object.keys(MOVED) as (keyof typeof MOVED)[]
  const renumber = RENUMBER[statements.dialect.kind](statements)
  return fencedOneByOne(
    'messages.release',
    async (tx, { lease: { instanceId }, now }: { lease: Lease; now: number }) => {
      const due = scheduled(statements, instanceId).select(columns).where('not_before', '<=', now)
      const rows = await tx.query(
        statements.locking(
          due
            .orderBy('not_before')
            // A command comes after the message that it is about, even if clocks were wrong.
            .orderBy(sql`case when id < 'msg_' then 1 else 0 end`)
            .orderBy('created_at')
            .orderBy('id')
            .limit(RELEASED_AT_ONCE),
          'update',
          'messages',
        ),
      )
      if (rows.length > 0) await renumber(tx, rows)
      const [first] = await tx.query(firstScheduled(statements, instanceId))
      return { released: rows.length, next: first?.not_before ?? null }
    },
  )
}

type Renumber = (tx: Transaction, rows: readonly RowOf<typeof MOVED>[]) => Promise<unknown>

/** Updates the rows, so that a deletion that waits for the lock of a row finds the row afterwards. */
function updater(statements: Statements): Renumber {
  const update = statements.update('messages', { instance_id: 'text', id: 'text' }, { seq: 'integer' })
  return async (tx, rows) => {
    const next = sql<{ seq: number }>`select nextval(pg_get_serial_sequence('messages', 'seq')) as seq
      from generate_series(1, ${sql.lit(rows.length)})`
    const drawn = await tx.query<{ seq: number }>({ compile: () => next.compile(statements.db) })
    const numbers = drawn.map(({ seq }) => Number(seq)).toSorted((a, b) => a - b)
    return tx.each(
      update,
      rows.map(({ instance_id, id }, index) => ({ instance_id, id, seq: numbers[index]! })),
    )
  }
}

/** Deletes the rows and inserts them again: SQLite ignores a number set by an update when it assigns the next one. */
function reinserter(statements: Statements): Renumber {
  const remove = statements.remove('messages', { instance_id: 'text', id: 'text' })
  const insert = statements.insert('messages', MOVED)
  return async (tx, rows) => {
    await tx.each(remove, rows)
    await tx.each(insert, rows)
  }
}

const RENUMBER: Record<DatabaseKind, (statements: Statements) => Renumber> = { sqlite: reinserter, postgres: updater }

function scheduled({ db }: Statements, instanceId: InstanceId) {
  return db.selectFrom('messages').where('instance_id', '=', instanceId).where(IS_SCHEDULED)
}

function firstScheduled(statements: Statements, instanceId: InstanceId) {
  return scheduled(statements, instanceId).select('not_before').orderBy('not_before').limit(1)
}
