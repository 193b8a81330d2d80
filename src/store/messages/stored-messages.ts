import { type RawBuilder, sql } from 'kysely'
import { EVENT_KINDS, type EventKind } from '../../domain/events/event.ts'
import { firstMessageId, type InstanceId, isCommandId, type MessageId } from '../../domain/ids.ts'
import type { Message, MessageFailure, MessageProgress } from '../../domain/message.ts'
import { toSummary, withLatestDelivery } from '../deliveries/delivery-summary.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { countFitting, idBefore, TOP, toPage } from '../engine/cursor.ts'
import { fenced, type Operation } from '../engine/operation.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import { IS_PREPARED } from '../engine/schema/messages.ts'
import { searchPatterns } from '../engine/search-patterns.ts'
import type { Lease } from '../leases/leases.ts'
import { acceptOperation } from './accepting.ts'
import { findIncomingStatement, toIncoming } from './incoming.ts'
import type {
  AcceptOutcome,
  MessageEvent,
  MessageFilter,
  MessageReference,
  Messages,
  NewMessage,
  PreparedMessage,
  QueuedAge,
  QueuedMessage,
  QuotedMessage,
  ReceiptOutcome,
  SentMessage,
  StoredIncoming,
} from './messages.ts'
import type { Progress, ProgressInput } from './progress.ts'
import { queuedStatements, toAge, toQueued } from './queued-rows.ts'
import { QuotesAndCommands } from './quotes-and-commands.ts'
import { ScheduledMessages } from './scheduled-messages.ts'
import type { Slice } from './searching.ts'
import { findSentInSlice, SHOWN, selectSent, toMessage } from './sent-rows.ts'

export class StoredMessages implements Messages {
  readonly #core: Core
  readonly #progress: Progress
  readonly #accept
  readonly #delete
  readonly #quotesAndCommands: QuotesAndCommands
  readonly #prepare
  readonly #scheduled: ScheduledMessages
  readonly #statements

  constructor(core: Core, progress: Progress) {
    this.#core = core
    this.#progress = progress
    this.#accept = acceptOperation(core, (tx, cancellations) => progress.cancel(tx, cancellations))
    // A deletion is not independent: it may change the same message as a write of the owner.
    this.#delete = { ...this.#accept, name: 'messages.delete', isIndependent: false }
    this.#quotesAndCommands = new QuotesAndCommands(core)
    this.#scheduled = new ScheduledMessages(core)
    this.#prepare = prepareOperation(core)
    this.#statements = prepareReads(core)
  }

  async accept(message: NewMessage, now: number): Promise<AcceptOutcome> {
    const command = message.extras?.command
    const outcome = await this.#core.write(command?.kind === 'delete' ? this.#delete : this.#accept, { message, now })
    if (outcome.kind === 'accepted') {
      const isPlain = command === undefined && message.notBefore === undefined
      if (!isPlain) this.#core.hints.publish('plans', message.instanceId)
      if (command?.kind === 'delete') this.#core.hints.publish('deliveries', message.instanceId)
      this.#core.hints.publish('queued', message.instanceId, isPlain ? message.to : undefined)
      if (message.file?.url !== undefined) this.#core.hints.publish('files', message.instanceId)
      this.#core.hints.publish('log', message.instanceId)
    }
    return outcome
  }

  async find(instanceId: InstanceId, id: MessageId): Promise<Message | null> {
    // A command is not a message, although its row is in the same table.
    if (isCommandId(id)) return null
    const [row] = await this.#core.reader.run(this.#statements.find, { instanceId, id })
    return row === undefined ? null : toMessage(row)
  }

  async findIncoming(instanceId: InstanceId, id: MessageId): Promise<StoredIncoming | null> {
    const [row] = await this.#core.reader.run(this.#statements.findIncoming, { instanceId, id })
    return row === undefined ? null : toIncoming(row)
  }

  async list(instanceId: InstanceId, page: PageRequest, filter: MessageFilter = {}): Promise<Page<Message>> {
    const { state, to, search: wanted, since = 0, until } = filter
    const top = until === undefined ? TOP : firstMessageId(until)
    const before = idBefore(page, 'msg')
    const slice: Slice = { below: before < top ? before : top, from: firstMessageId(since) }
    const conditions: RawBuilder<boolean>[] = []
    if (to !== undefined) conditions.push(sql`recipient = ${to}`)
    if (wanted !== undefined) conditions.push(matches(wanted, this.#core.statements.dialect.fold(sql.ref('text'))))
    const found = await findSentInSlice(this.#core, instanceId, slice, page.limit + 1, state, conditions)
    const { data, nextCursor } = toPage(found, countFitting(found, page.limit), idOf, idOf)
    if (data.length === 0) return { data: [], nextCursor }
    const rows = selectSent(this.#core.statements, instanceId, data).orderBy('id', 'desc')
    return { data: (await this.#core.reader.query(rows)).map(toMessage), nextCursor }
  }

  async listEvents(instanceId: InstanceId, id: MessageId): Promise<MessageEvent[]> {
    const { db } = this.#core.statements
    const rows = await this.#core.reader.query(
      withLatestDelivery(db.selectFrom('events'))
        .select(['events.id', 'events.kind', 'events.timestamp', 'events.seq'])
        .where('events.instance_id', '=', instanceId)
        .where('events.message_id', '=', id),
    )
    // Events without a number are older. They happened in the order of `EVENT_KINDS`, whatever the clocks say.
    const kind = (row: { kind: EventKind }) => EVENT_KINDS.indexOf(row.kind)
    rows.sort((one, other) => (one.seq ?? 0) - (other.seq ?? 0) || kind(one) - kind(other))
    return rows.map(row => ({ id: row.id, kind: row.kind, timestamp: row.timestamp, delivery: toSummary(row) }))
  }

  async listQueued(instanceId: InstanceId, limit: number, afterSeq = 0): Promise<QueuedMessage[]> {
    const rows = await this.#core.reader.run(this.#statements.listQueued, { instanceId, limit, afterSeq })
    return rows.map(toQueued)
  }

  async listQueuedAges(instanceId: InstanceId, limit: number, afterSeq: number): Promise<QueuedAge[]> {
    const rows = await this.#core.reader.run(this.#statements.listQueuedAges, { instanceId, limit, afterSeq })
    return rows.map(toAge)
  }

  async listQueuedNumbers(
    instanceId: InstanceId,
    afterSeq: number,
    toSeq: number,
    limit: number,
  ): Promise<readonly number[]> {
    const range = { instanceId, afterSeq, toSeq, limit }
    const rows = await this.#core.reader.run(this.#statements.listQueuedNumbers, range)
    return rows.map(({ seq }) => seq)
  }

  recordUnquoted(lease: Lease, id: MessageId): Promise<void> {
    return this.#quotesAndCommands.recordUnquoted(lease, id)
  }

  findQuoted(instanceId: InstanceId, id: MessageId): Promise<QuotedMessage | null> {
    return this.#quotesAndCommands.findQuoted(instanceId, id)
  }

  findCommand(instanceId: InstanceId, id: MessageId) {
    return this.#quotesAndCommands.findCommand(instanceId, id)
  }

  releaseDue(lease: Lease, now: number): Promise<number | null> {
    return this.#scheduled.releaseDue(lease, now)
  }

  recordPrepared(lease: Lease, id: MessageId, prepared: PreparedMessage): Promise<PreparedMessage | null> {
    return this.#core.write(this.#prepare, { lease, id, prepared })
  }

  async recordProgress(lease: Lease, whatsappId: string, reached: MessageProgress, now: number) {
    return (await this.#record({ lease, whatsappId, news: reached, now })).outcome
  }

  recordReceipt(
    lease: Lease,
    whatsappId: string,
    reached: MessageProgress,
    now: number,
    from: readonly string[],
  ): Promise<ReceiptOutcome> {
    return this.#record({ lease, whatsappId, news: reached, now, from })
  }

  async recordFailure(lease: Lease, { id, whatsappId }: MessageReference, failure: MessageFailure, now: number) {
    return (await this.#record({ lease, id, whatsappId, news: failure, now })).outcome
  }

  async recordQueueFailed(lease: Lease, failure: MessageFailure, now: number, limit: number): Promise<number> {
    const { count, deliverable } = await this.#core.write(this.#progress.failQueue, { lease, failure, now, limit })
    if (deliverable) this.#core.hints.publish('deliveries', lease.instanceId)
    if (count > 0) this.#core.hints.publish('log', lease.instanceId)
    return count
  }

  async findSent(instanceId: InstanceId, whatsappId: string): Promise<SentMessage | null> {
    const [row] = await this.#core.reader.run(this.#statements.findSent, { instanceId, whatsappId })
    if (!row?.address || !row.content) return null
    const { address, content, text, edited_at } = row
    return { address, content, ...(edited_at !== null && { editedText: text }) }
  }

  async #record(input: ProgressInput): Promise<ReceiptOutcome> {
    const { outcome, messageId, deliverable } = await this.#core.write(this.#progress.move, input)
    if (deliverable) this.#core.hints.publish('deliveries', input.lease.instanceId)
    if (outcome === 'recorded') this.#core.hints.publish('log', input.lease.instanceId)
    return { outcome, messageId }
  }
}

function idOf({ id }: { id: string }): string {
  return id
}

function matches(search: string, text: RawBuilder<string>) {
  const { words, number } = searchPatterns(search)
  return sql<boolean>`(recipient like ${number} escape '\\' or ${text} like ${words} escape '\\')`
}

interface PrepareInput {
  lease: Lease
  id: MessageId
  prepared: PreparedMessage
}

/** The outcome is null if the message has failed. */
function prepareOperation({ statements }: Core): Operation<PrepareInput, PreparedMessage | null> {
  // Address and content are set together, so the first call determines both.
  const fix = statements.rows({ instance_id: 'text', id: 'text', address: 'text', content: 'blob' }, db =>
    db
      .updateTable('messages')
      .from('input')
      .set(eb => ({
        address: eb.fn.coalesce('messages.address', 'input.address'),
        content: eb.fn.coalesce('messages.content', 'input.content'),
      }))
      .whereRef('messages.instance_id', '=', 'input.instance_id')
      .whereRef('messages.id', '=', 'input.id')
      // Not a condition on `state`: with it, PostgreSQL would read the index of all queued messages.
      .where('messages.failed_at', 'is', null)
      .returning(['messages.instance_id', 'messages.id', 'messages.address', 'messages.content']),
  )
  const find = statements.find('messages', { instance_id: 'text', id: 'text' }, ['id'])
  const checkExistence = async (tx: Transaction, rows: readonly { instance_id: InstanceId; id: MessageId }[]) => {
    const found = new Set((await tx.each(find, rows)).map(({ id }) => id))
    const absent = rows.find(({ id }) => !found.has(id))
    if (absent) throw new Error(`There is no message ${absent.id} to prepare.`)
  }
  return {
    name: 'messages.prepare',
    ...fenced,
    isIndependent: true,
    keys: ({ id }) => [id],
    async run(tx, inputs) {
      const rows: { instance_id: InstanceId; id: MessageId; address: string; content: Uint8Array }[] = []
      for (const { lease, id, prepared } of inputs) rows.push({ instance_id: lease.instanceId, id, ...prepared })
      const stored = new Map<string, PreparedMessage>()
      for (const { instance_id, id, address, content } of await tx.each(fix, rows)) {
        stored.set(`${instance_id}/${id}`, { address: address!, content: content! })
      }
      if (stored.size < rows.length) await checkExistence(tx, rows)
      return inputs.map(({ lease, id }) => stored.get(`${lease.instanceId}/${id}`) ?? null)
    },
  }
}

function prepareReads({ statements }: Core) {
  const { db } = statements
  return {
    find: statements.one((p: { instanceId: InstanceId; id: MessageId }) =>
      db.selectFrom('messages').select(SHOWN).where('instance_id', '=', p.instanceId).where('id', '=', p.id),
    ),
    findIncoming: findIncomingStatement(statements),
    ...queuedStatements(statements),
    findSent: statements.one((p: { instanceId: InstanceId; whatsappId: string }) =>
      db
        .selectFrom('messages')
        .select(['address', 'content', 'text', 'edited_at'])
        .where('instance_id', '=', p.instanceId)
        .where('whatsapp_id', '=', p.whatsappId)
        .where(IS_PREPARED),
    ),
  }
}
