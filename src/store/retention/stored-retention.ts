import { sql } from 'kysely'
import {
  type EventId,
  firstCommandId,
  firstEventId,
  firstMessageId,
  type InstanceId,
  type MessageId,
} from '../../domain/ids.ts'
import { HAS_DELIVERIES } from '../endpoints/stored-endpoints.ts'
import { hasDeliveries } from '../endpoints/stored-operator-endpoints.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { type Operation, oneByOne } from '../engine/operation.ts'
import type { Statements } from '../engine/statement.ts'
import { outlivesExpiry } from '../messages/idempotency-keys.ts'
import { ORDER_LIVES_MS } from '../numbers/numbers.ts'
import { ContactErasure } from './contact-erasure.ts'
import { ContactExport } from './contact-export.ts'
import type { ContactData, ErasedContact, Retention } from './retention.ts'

/** Messages or events in one commit, each with a few events, deliveries and attempts. */
const STEP = 50
/** Idempotency keys and look-ups of numbers in one commit. */
const EXPIRED_STEP = 500
/** Instances found at a time. */
const INSTANCES_STEP = 50
/** How long a link for linking is listed after it ended. */
const ENDED_HANDOUT_MS = 24 * 60 * 60_000
/** A call ends after about this many rows. */
const ROWS_PER_CALL = 500

export class StoredRetention implements Retention {
  readonly #core: Core
  readonly #findInstances
  readonly #erase
  readonly #contacts: ContactErasure
  readonly #export: ContactExport
  readonly #eraseExpired: Operation<{ now: number }, number>

  constructor(core: Core) {
    this.#core = core
    this.#findInstances = findInstances(core.statements)
    const eraser = new Eraser(core.statements)
    this.#erase = oneByOne(
      'retention.step',
      (input: { instanceId: InstanceId; before: number }) => input.instanceId,
      (tx, { instanceId, before }) => eraser.erase(tx, instanceId, before),
    )
    this.#eraseExpired = eraseExpiredOperation(core.statements)
    this.#contacts = new ContactErasure(core)
    this.#export = new ContactExport(core)
  }

  openContact(instanceId: InstanceId, contact: string, now: number): Promise<ContactData> {
    return this.#export.open(instanceId, contact, now)
  }

  eraseContact(instanceId: InstanceId, contact: string, now: number): Promise<ErasedContact> {
    return this.#contacts.erase(instanceId, contact, now)
  }

  async step(before: number, now: number): Promise<number> {
    const instances = await this.#core.reader.run(this.#findInstances, agesOf(before))
    let rows = await this.#core.write(this.#eraseExpired, { now })
    for (const { id } of instances) {
      rows += await this.#core.write(this.#erase, { instanceId: id, before })
      if (rows >= ROWS_PER_CALL) break
    }
    if (rows > 0) this.#core.traces.note()
    else await this.#core.traces.erase()
    return rows
  }
}

/**
 * Idempotency keys expire by the store's clock, look-ups of numbers by the caller's clock. Deleted endpoints are erased
 * when their deliveries have ended.
 */
function eraseExpiredOperation(statements: Statements): Operation<{ now: number }, number> {
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
    async (tx, input) =>
      (await erase(tx, 'idempotency_keys', 'key', now, outlivesExpiry(statements))) +
      (await erase(tx, 'numbers', 'number', input.now)) +
      (await tx.query(idle)).length +
      (await tx.query(idleOperators)).length +
      (await tx.query(ended)).length +
      (await tx.query(forgotten)).length,
  )
}

function findInstances(statements: Statements) {
  return statements.one((p: Ages) =>
    statements.db
      .selectFrom('instances')
      .select('id')
      .where(({ or, exists, selectFrom }) =>
        or([
          ...OLD_IDS.map(isOld =>
            exists(
              selectFrom('messages as m')
                .select('m.id')
                .whereRef('m.instance_id', '=', 'instances.id')
                .where(isOld(p))
                .where(isErasable(p.before)),
            ),
          ),
          exists(
            selectFrom('incoming_messages as i')
              .select('i.id')
              .whereRef('i.instance_id', '=', 'instances.id')
              .where('i.id', '<', p.beforeMessage)
              .where(hasNoOpenDelivery('i')),
          ),
          exists(
            selectFrom('events as e')
              .select('e.id')
              .whereRef('e.instance_id', '=', 'instances.id')
              .where('e.id', '<', p.beforeEvent)
              .where(HAS_NO_MESSAGE)
              .where(EVENT_HAS_NO_OPEN_DELIVERY),
          ),
        ]),
      )
      .orderBy('id')
      .limit(INSTANCES_STEP),
  )
}

/** Rows older than `before` have IDs below the other three values. */
interface Ages {
  before: number
  beforeMessage: MessageId
  beforeCommand: MessageId
  beforeEvent: EventId
}

function agesOf(before: number): Ages {
  return {
    before,
    beforeMessage: firstMessageId(before),
    beforeCommand: firstCommandId(before),
    beforeEvent: firstEventId(before),
  }
}

/** Commands are rows among the messages, with IDs before those of messages. One condition for both would select recent commands too. */
const OLD_IDS = [
  ({ beforeCommand }: Ages) => sql<boolean>`m.id < ${beforeCommand}`,
  ({ beforeMessage }: Ages) => sql<boolean>`m.id >= 'msg_' and m.id < ${beforeMessage}`,
]

/**
 * The age of a message counts from its last event, because the pace or a lost connection may delay it for long; that of a scheduled
 * one also from its scheduled time.
 */
function isErasable(before: number) {
  return sql<boolean>`m.state <> 'queued' and (m.not_before is null or m.not_before < ${before})
    and (m.last_event_at is null or m.last_event_at < ${before}) and ${hasNoOpenDelivery('m')}`
}

/**
 * No event of the message has an unfinished delivery. Found by the events, because deliveries of incoming messages and of commands,
 * and redeliveries, do not name the message. `limit` and `cross join` make PostgreSQL and SQLite look up the events of each message.
 * Otherwise they read all events of the instance, or all its unfinished deliveries.
 */
function hasNoOpenDelivery(message: 'm' | 'i') {
  return sql<boolean>`(select 1 from events as of_message cross join deliveries as d
    where of_message.instance_id = ${sql.ref(`${message}.instance_id`)}
      and of_message.message_id = ${sql.ref(`${message}.id`)}
      and d.instance_id = of_message.instance_id and d.event_id = of_message.id limit 1) is null`
}

const EVENT_HAS_NO_OPEN_DELIVERY = sql<boolean>`not exists (select 1 from deliveries as d
    where d.instance_id = e.instance_id and d.event_id = e.id)`

/** The event `e` does not report a message, or its message is erased. */
const HAS_NO_MESSAGE = sql<boolean>`(e.message_id is null or (
  not exists (select 1 from messages as of_e where of_e.instance_id = e.instance_id and of_e.id = e.message_id)
  and not exists (select 1 from incoming_messages as of_e
    where of_e.instance_id = e.instance_id and of_e.id = e.message_id)))`

class Eraser {
  readonly #statements: Statements
  readonly #prepared

  constructor(statements: Statements) {
    this.#statements = statements
    this.#prepared = prepare(statements)
  }

  async erase(tx: Transaction, instanceId: InstanceId, before: number): Promise<number> {
    const sent = await this.#findMessages(tx, instanceId, before)
    const received = await this.#findIncoming(tx, instanceId, before)
    const events = [
      ...(await tx.each(
        this.#prepared.findEventsOfMessage,
        [...sent, ...received].map(({ id }) => ({ instance_id: instanceId, message_id: id })),
      )),
      ...(await this.#findOtherEvents(tx, instanceId, before)),
    ]
    // Checked again, now that the locks prevent new deliveries of these events.
    const keys = events.map(({ id }) => ({ instance_id: instanceId, event_id: id }))
    const open = new Set((await tx.each(this.#prepared.findOpen, keys)).map(row => row.event_id))
    const unfinished = new Set(events.filter(({ id }) => open.has(id)).map(event => event.message_id))
    const keysOf = (messages: readonly { id: string }[]) =>
      messages.filter(({ id }) => !unfinished.has(id)).map(({ id }) => ({ instance_id: instanceId, id }))
    // An event that is younger than its message stays until it is old enough itself.
    const oldEvents = events.filter(
      ({ id, message_id }) =>
        id < firstEventId(before) && (message_id === null ? !open.has(id) : !unfinished.has(message_id)),
    )
    const eventKeys = oldEvents.map(({ id }) => ({ instance_id: instanceId, id, event_id: id }))
    const erasedTo = oldEvents.reduce((highest, { seq }) => Math.max(highest, seq ?? 0), 0)
    if (erasedTo > 0) await this.#noteErased(tx, instanceId, erasedTo)
    const erased = [
      await tx.each(this.#prepared.removeAttempts, eventKeys),
      await tx.each(this.#prepared.removeFinished, eventKeys),
      await tx.each(this.#prepared.removeEvent, eventKeys),
      await tx.each(this.#prepared.removeMessage, keysOf(sent)),
      await tx.each(this.#prepared.removeIncoming, keysOf(received)),
    ]
    return erased.reduce((sum, rows) => sum + rows.length, 0)
  }

  async #noteErased(tx: Transaction, instance_id: InstanceId, erased_to: number): Promise<void> {
    await tx.query(
      this.#statements.db
        .insertInto('event_feeds')
        .values({ instance_id, erased_to })
        .onConflict(oc =>
          oc
            .column('instance_id')
            .doUpdateSet(eb => ({ erased_to: eb.ref('excluded.erased_to') }))
            .whereRef('event_feeds.erased_to', '<', 'excluded.erased_to'),
        ),
    )
  }

  async #findMessages(tx: Transaction, instanceId: InstanceId, before: number) {
    const ages = agesOf(before)
    const found: { id: MessageId }[] = []
    for (const isOld of OLD_IDS) {
      const query = this.#statements.db
        .selectFrom('messages as m')
        .select('m.id')
        .where('m.instance_id', '=', instanceId)
        .where(isOld(ages))
        .where(isErasable(before))
        .orderBy('m.id')
        .limit(STEP - found.length)
      // The lock makes a receipt, or a redelivery of an event, wait and then find nothing.
      found.push(...(await tx.query(this.#statements.locking(query, 'update', 'm'))))
    }
    return found
  }

  #findIncoming(tx: Transaction, instanceId: InstanceId, before: number) {
    const query = this.#statements.db
      .selectFrom('incoming_messages as i')
      .select('i.id')
      .where('i.instance_id', '=', instanceId)
      .where('i.id', '<', firstMessageId(before))
      .where(hasNoOpenDelivery('i'))
      .orderBy('i.id')
      .limit(STEP)
    return tx.query(this.#statements.locking(query, 'update', 'i'))
  }

  #findOtherEvents(tx: Transaction, instanceId: InstanceId, before: number) {
    const query = this.#statements.db
      .selectFrom('events as e')
      .select(['e.id', 'e.message_id', 'e.seq'])
      .where('e.instance_id', '=', instanceId)
      .where('e.id', '<', firstEventId(before))
      .where(HAS_NO_MESSAGE)
      .where(EVENT_HAS_NO_OPEN_DELIVERY)
      .orderBy('e.id')
      .limit(STEP)
    return tx.query(this.#statements.locking(query, 'update', 'e'))
  }
}

function prepare(statements: Statements) {
  return {
    findEventsOfMessage: statements.find(
      'events',
      { instance_id: 'text', message_id: 'text' },
      ['id', 'message_id', 'seq'],
      {
        lock: 'update',
      },
    ),
    findOpen: statements.find('deliveries', { instance_id: 'text', event_id: 'text' }, ['event_id']),
    removeAttempts: statements.remove('attempts', { instance_id: 'text', event_id: 'text' }),
    removeFinished: statements.remove('finished_deliveries', { instance_id: 'text', event_id: 'text' }),
    removeEvent: statements.remove('events', { instance_id: 'text', id: 'text' }),
    removeMessage: statements.remove('messages', { instance_id: 'text', id: 'text' }),
    removeIncoming: statements.remove('incoming_messages', { instance_id: 'text', id: 'text' }),
  }
}
