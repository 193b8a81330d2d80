import { sql } from 'kysely'
import { type EventId, firstEventId, firstMessageId, type InstanceId, type MessageId } from '../domain/ids.ts'
import type { Core } from './core.ts'
import { oneByOne } from './operation.ts'
import type { Transaction } from './session.ts'
import type { Statements } from './statement.ts'
import type { Retention } from './store.ts'

/** Messages or events in one commit; each brings a few events, deliveries and attempts along. */
const STEP = 50
/** Idempotency keys in one commit. */
const KEYS_STEP = 500
/** Instances looked up at a time. */
const INSTANCES_STEP = 50
/** Enough for one call. */
const ROWS_PER_CALL = 500

export class StoredRetention implements Retention {
  readonly #core: Core
  readonly #findInstances
  readonly #erase

  constructor(core: Core) {
    this.#core = core
    this.#findInstances = findInstances(core.statements)
    const erasing = new Erasing(core.statements)
    this.#erase = oneByOne(
      'retention.step',
      (input: { instanceId: InstanceId; before: number }) => input.instanceId,
      (tx, { instanceId, before }) => erasing.erase(tx, instanceId, before),
    )
  }

  async step(before: number): Promise<number> {
    const instances = await this.#core.reader.run(this.#findInstances, {
      beforeMessage: firstMessageId(before),
      beforeEvent: firstEventId(before),
    })
    let rows = 0
    for (const { id } of instances) {
      rows += await this.#core.write(this.#erase, { instanceId: id, before })
      if (rows >= ROWS_PER_CALL) break
    }
    return rows
  }
}

/** Instances that have something to erase. */
function findInstances(statements: Statements) {
  return statements.one((p: { beforeMessage: MessageId; beforeEvent: EventId }) =>
    statements.db
      .selectFrom('instances')
      .select('id')
      .where(({ or, exists, selectFrom }) =>
        or([
          exists(
            selectFrom('messages as m')
              .select('m.id')
              .whereRef('m.instance_id', '=', 'instances.id')
              .where('m.id', '<', p.beforeMessage)
              .where('m.state', '!=', 'queued')
              .where(nothingOwed('m', 'message_id')),
          ),
          exists(
            selectFrom('events as e')
              .select('e.id')
              .whereRef('e.instance_id', '=', 'instances.id')
              .where('e.id', '<', p.beforeEvent)
              .where('e.message_id', 'is', null)
              .where(nothingOwed('e', 'event_id')),
          ),
          exists(
            selectFrom('idempotency_keys as k')
              .select('k.key')
              .whereRef('k.instance_id', '=', 'instances.id')
              .where('k.expires_at', '<=', statements.now),
          ),
        ]),
      )
      .orderBy('id')
      .limit(INSTANCES_STEP),
  )
}

/** No delivery of the row's message or event is unfinished. */
function nothingOwed(alias: 'm' | 'e', column: 'message_id' | 'event_id') {
  return sql<boolean>`not exists (select 1 from deliveries as d
    where d.instance_id = ${sql.ref(`${alias}.instance_id`)}
      and ${sql.ref(`d.${column}`)} = ${sql.ref(`${alias}.id`)})`
}

class Erasing {
  readonly #statements: Statements
  readonly #prepared

  constructor(statements: Statements) {
    this.#statements = statements
    this.#prepared = prepare(statements)
  }

  async erase(tx: Transaction, instanceId: InstanceId, before: number): Promise<number> {
    const { db, now } = this.#statements
    const messages = await this.#findMessages(tx, instanceId, before)
    const messageKeys = messages.map(({ id }) => ({ instance_id: instanceId, message_id: id }))
    const events = [
      ...(await tx.each(this.#prepared.findEventsOfMessage, messageKeys)),
      ...(await this.#findOtherEvents(tx, instanceId, before)),
    ]
    const eventKeys = events.map(({ id }) => ({ instance_id: instanceId, event_id: id }))
    const gone = [
      await tx.each(this.#prepared.removeAttempts, eventKeys),
      await tx.each(this.#prepared.removeFinished, eventKeys),
      await tx.each(this.#prepared.removeEvent, eventKeys),
      await tx.each(this.#prepared.removeMessage, messageKeys),
      await tx.query(
        db
          .deleteFrom('idempotency_keys')
          .where('instance_id', '=', instanceId)
          .where('key', 'in', eb =>
            eb
              .selectFrom('idempotency_keys')
              .select('key')
              .where('instance_id', '=', instanceId)
              .where('expires_at', '<=', now)
              .limit(KEYS_STEP),
          )
          .returning('instance_id'),
      ),
    ]
    return gone.reduce((sum, rows) => sum + rows.length, 0)
  }

  #findMessages(tx: Transaction, instanceId: InstanceId, before: number) {
    const query = this.#statements.db
      .selectFrom('messages as m')
      .select('m.id')
      .where('m.instance_id', '=', instanceId)
      .where('m.id', '<', firstMessageId(before))
      .where('m.state', '!=', 'queued')
      .where(nothingOwed('m', 'message_id'))
      .orderBy('m.id')
      .limit(STEP)
    // A receipt that comes in now waits, and then finds the message gone.
    return tx.query(this.#statements.locking(query, 'update', 'm'))
  }

  #findOtherEvents(tx: Transaction, instanceId: InstanceId, before: number) {
    const query = this.#statements.db
      .selectFrom('events as e')
      .select('e.id')
      .where('e.instance_id', '=', instanceId)
      .where('e.id', '<', firstEventId(before))
      .where('e.message_id', 'is', null)
      .where(nothingOwed('e', 'event_id'))
      .orderBy('e.id')
      .limit(STEP)
    return tx.query(this.#statements.locking(query, 'update', 'e'))
  }
}

function prepare(statements: Statements) {
  return {
    findEventsOfMessage: statements.rows({ instance_id: 'text', message_id: 'text' }, db =>
      db
        .selectFrom('input')
        .innerJoin('events as e', join =>
          join.onRef('e.instance_id', '=', 'input.instance_id').onRef('e.message_id', '=', 'input.message_id'),
        )
        .select('e.id'),
    ),
    removeAttempts: statements.rows({ instance_id: 'text', event_id: 'text' }, db =>
      db
        .deleteFrom('attempts')
        .where(eb =>
          eb(
            eb.refTuple('instance_id', 'event_id'),
            'in',
            eb.selectFrom('input').select(['instance_id', 'event_id']).$asTuple('instance_id', 'event_id'),
          ),
        )
        .returning('instance_id'),
    ),
    removeFinished: statements.rows({ instance_id: 'text', event_id: 'text' }, db =>
      db
        .deleteFrom('finished_deliveries')
        .where(eb =>
          eb(
            eb.refTuple('instance_id', 'event_id'),
            'in',
            eb.selectFrom('input').select(['instance_id', 'event_id']).$asTuple('instance_id', 'event_id'),
          ),
        )
        .returning('instance_id'),
    ),
    removeEvent: statements.rows({ instance_id: 'text', event_id: 'text' }, db =>
      db
        .deleteFrom('events')
        .where(eb =>
          eb(
            eb.refTuple('instance_id', 'id'),
            'in',
            eb.selectFrom('input').select(['instance_id', 'event_id']).$asTuple('instance_id', 'event_id'),
          ),
        )
        .returning('instance_id'),
    ),
    removeMessage: statements.rows({ instance_id: 'text', message_id: 'text' }, db =>
      db
        .deleteFrom('messages')
        .where(eb =>
          eb(
            eb.refTuple('instance_id', 'id'),
            'in',
            eb.selectFrom('input').select(['instance_id', 'message_id']).$asTuple('instance_id', 'message_id'),
          ),
        )
        .returning('instance_id'),
    ),
  }
}
