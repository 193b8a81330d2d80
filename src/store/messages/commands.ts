import { sql } from 'kysely'
import type { CommandState, MessageExtras } from '../../domain/conversation.ts'
import type { InstanceId, MessageId } from '../../domain/ids.ts'
import type { MessageFailure } from '../../domain/message.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { fencedOneByOne } from '../engine/operation.ts'
import { IS_SCHEDULED } from '../engine/schema/messages.ts'
import type { RowOf, Statements } from '../engine/statement.ts'
import type { Lease } from '../leases/leases.ts'
import { findIncomingStatement, toIncoming } from './incoming.ts'
import type { QuotedMessage } from './messages.ts'

/** Scheduled messages released by one commit. */
const RELEASED_AT_ONCE = 100

/** Reads and writes for quotes, commands and scheduled messages. */
export class Extras {
  readonly #core: Core
  readonly #findOwn
  readonly #findReceived
  readonly #unquote
  readonly #release

  constructor(core: Core) {
    const { statements } = core
    this.#core = core
    this.#findOwn = statements.find('messages', { instance_id: 'text', id: 'text' }, [
      'id',
      'state',
      'created_at',
      'sent_at',
      'failed_at',
      'failure_code',
      'failure_message',
      'text',
      'content',
      'extras',
      'deleted_at',
    ])
    this.#findReceived = findIncomingStatement(statements)
    this.#unquote = fencedOneByOne('messages.unquote', async (tx, { lease, id }: { lease: Lease; id: MessageId }) => {
      const [row] = await tx.each(this.#findOwn, [{ instance_id: lease.instanceId, id }])
      const extras: MessageExtras = JSON.parse(row?.extras ?? '{}')
      if (!extras.quote) return
      const dropped = JSON.stringify({ ...extras, quote: { ...extras.quote, dropped: true } })
      const query = statements.db.updateTable('messages').set({ extras: dropped })
      await tx.query(query.where('instance_id', '=', lease.instanceId).where('id', '=', id))
    })
    this.#release = releaseOperation(statements)
  }

  async findQuoted(instanceId: InstanceId, id: MessageId): Promise<QuotedMessage | null> {
    const { reader } = this.#core
    const [own] = await reader.each(this.#findOwn, [{ instance_id: instanceId, id }])
    if (own) {
      const { state, sent_at, text, content, deleted_at } = own
      return deleted_at === null ? { state, sentAt: sent_at, type: 'text', text, content } : null
    }
    const [row] = await reader.run(this.#findReceived, { instanceId, id })
    if (row === undefined) return null
    const { type, text = '', sentAt, deletedAt } = toIncoming(row)
    return deletedAt !== null ? null : { state: null, sentAt, type, text, content: null }
  }

  async recordUnquoted(lease: Lease, id: MessageId): Promise<void> {
    await this.#core.write(this.#unquote, { lease, id })
  }

  async findCommand(
    instanceId: InstanceId,
    id: MessageId,
  ): Promise<(CommandState & { failure: MessageFailure | null }) | null> {
    const [row] = await this.#core.reader.each(this.#findOwn, [{ instance_id: instanceId, id }])
    const { command }: MessageExtras = JSON.parse(row?.extras ?? '{}')
    if (!row || !command) return null
    const { failure_code: code, failure_message: message } = row
    return {
      id,
      kind: command.kind,
      messageId: command.target.messageId,
      createdAt: row.created_at,
      doneAt: row.sent_at,
      failedAt: row.failed_at,
      failure: code === null ? null : { code, message: message! },
    }
  }

  /** @returns when the next one is due; null if none is scheduled */
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
} as const

/** Gives scheduled messages whose moment has come their place in the order: the next numbers. */
function releaseOperation(statements: Statements) {
  const columns = Object.keys(MOVED) as (keyof typeof MOVED)[]
  const renumber = statements.dialect.isShared ? updater(statements) : reinserter(statements)
  return fencedOneByOne(
    'messages.release',
    async (tx, { lease: { instanceId }, now }: { lease: Lease; now: number }) => {
      const due = scheduled(statements, instanceId).select(columns).where('not_before', '<=', now)
      const rows = await tx.query(
        statements.locking(
          due
            .orderBy('not_before')
            // Clocks may say otherwise, but a command comes after the message that it concerns.
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

/** Updates the rows, so that a deletion that waits for such a row finds it afterwards. */
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

/** Inserts the rows anew: an update would not count as the latest number. */
function reinserter(statements: Statements): Renumber {
  const remove = statements.remove('messages', { instance_id: 'text', id: 'text' })
  const insert = statements.insert('messages', MOVED)
  return async (tx, rows) => {
    await tx.each(remove, rows)
    await tx.each(insert, rows)
  }
}

function scheduled({ db }: Statements, instanceId: InstanceId) {
  return db.selectFrom('messages').where('instance_id', '=', instanceId).where(IS_SCHEDULED)
}

function firstScheduled(statements: Statements, instanceId: InstanceId) {
  return scheduled(statements, instanceId).select('not_before').orderBy('not_before').limit(1)
}
