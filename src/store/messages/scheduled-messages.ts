import { setImmediate } from 'node:timers/promises'
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
      if (next === null || next > now) return next
      // Other work runs between the commits of a large campaign.
      await setImmediate()
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
      const lock = (due: Scheduled) =>
        tx.query(statements.locking(due.select(columns).limit(RELEASED_AT_ONCE), 'update', 'messages'))
      const rows = await findNext(tx, scheduled(statements, instanceId).where('not_before', '<=', now), lock)
      if (rows.length > 0) await renumber(tx, rows)
      const [first] = await tx.query(firstScheduled(statements, instanceId))
      return { released: rows.length, next: first?.not_before ?? null }
    },
  )
}

/**
 * The next messages in the order of their moments, and commands of a moment after its messages: a command follows the message that
 * it is about, even if clocks were wrong. IDs have the order of acceptance. The messages of one moment may be thousands, so they
 * are read in the order of the index, and only a batch that contains whole moments is sorted.
 */
async function findNext<R>(tx: Transaction, due: Scheduled, lock: (some: Scheduled) => Promise<R[]>): Promise<R[]> {
  const byMoment = due.select('not_before').orderBy('not_before').limit(1)
  const [first] = await tx.query(byMoment)
  const [last] = await tx.query(byMoment.offset(RELEASED_AT_ONCE - 1))
  if (first && first.not_before === last?.not_before) {
    const ofMoment = due.where('not_before', '=', first.not_before).orderBy('id')
    const messages = await lock(ofMoment.where('id', '>=', 'msg_'))
    return messages.length > 0 ? messages : lock(ofMoment.where('id', '<', 'msg_'))
  }
  const whole = last ? due.where('not_before', '<', last.not_before) : due
  return lock(whole.orderBy('not_before').orderBy(sql`case when id < 'msg_' then 1 else 0 end`).orderBy('id'))
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

type Scheduled = ReturnType<typeof scheduled>

function scheduled({ db }: Statements, instanceId: InstanceId) {
  return db.selectFrom('messages').where('instance_id', '=', instanceId).where(IS_SCHEDULED)
}

function firstScheduled(statements: Statements, instanceId: InstanceId) {
  return scheduled(statements, instanceId).select('not_before').orderBy('not_before').limit(1)
}
