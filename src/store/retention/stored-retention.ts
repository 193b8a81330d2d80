import { setImmediate } from 'node:timers/promises'
import { type EventId, firstEventId, type InstanceId, type MessageId } from '../../domain/ids.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { type Operation, oneByOne } from '../engine/operation.ts'
import type { Statements } from '../engine/statement.ts'
import { ContactErasure } from './contact-erasure.ts'
import { ContactExport } from './contact-export.ts'
import { eraseExpiredOperation } from './expired-rows.ts'
import {
  EVENT_HAS_NO_OPEN_DELIVERY,
  HAS_NO_MESSAGE,
  IS_ERASABLE_INCOMING,
  isErasable,
  type OldRows,
  OldRowsWalk,
} from './old-rows.ts'
import type { ContactData, ErasedContact, Retention } from './retention.ts'

/** Messages or events in one commit, each with a few events, deliveries and attempts. */
const STEP = 50
/** A call ends after about this many rows. */
const ROWS_PER_CALL = 500

export class StoredRetention implements Retention {
  readonly #core: Core
  readonly #walk: OldRowsWalk
  readonly #erase
  readonly #contacts: ContactErasure
  readonly #export: ContactExport
  readonly #eraseExpired: Operation<{ now: number }, number>

  constructor(core: Core) {
    this.#core = core
    this.#walk = new OldRowsWalk(core)
    const eraser = new Eraser(core.statements)
    this.#erase = oneByOne(
      'retention.step',
      (input: OldRows & { before: number }) => input.instanceId,
      (tx, input) => eraser.erase(tx, input),
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

  async step(before: number, now: number, stopping?: AbortSignal): Promise<number> {
    // Neither depends on the success of the other.
    const [expired, old] = await Promise.allSettled([
      this.#core.write(this.#eraseExpired, { now }),
      this.#eraseOld(before, stopping),
    ])
    if (expired.status === 'rejected') throw expired.reason
    if (old.status === 'rejected') throw old.reason
    const rows = expired.value + old.value
    if (expired.value > 0) this.#core.traces.note()
    if (rows === 0) await this.#core.traces.erase()
    return rows
  }

  /** @throws the first failure of an instance, after the others were handled */
  async #eraseOld(before: number, stopping: AbortSignal | undefined): Promise<number> {
    const failures: unknown[] = []
    let rows = 0
    while (rows < ROWS_PER_CALL && !stopping?.aborted && (await this.#walk.proceed(before))) {
      try {
        const found = await this.#walk.examine(before, STEP)
        if (found.ids.length > 0) rows += await this.#core.write(this.#erase, { ...found, before })
      } catch (error) {
        this.#walk.skipInstance()
        failures.push(error)
      }
      if (rows > 0) this.#core.traces.note()
      // On SQLite, reads block the event loop, so other calls run in between.
      await setImmediate()
    }
    if (failures.length > 0) throw failures[0]
    return rows
  }
}

class Eraser {
  readonly #statements: Statements
  readonly #prepared

  constructor(statements: Statements) {
    this.#statements = statements
    this.#prepared = prepare(statements)
  }

  async erase(tx: Transaction, { instanceId, kind, ids, before }: OldRows & { before: number }): Promise<number> {
    const sent = kind === 'command' || kind === 'message' ? await this.#findMessages(tx, instanceId, ids, before) : []
    const received = kind === 'incoming' ? await this.#findIncoming(tx, instanceId, ids) : []
    const events = [
      ...(await tx.each(
        this.#prepared.findEventsOfMessage,
        [...sent, ...received].map(({ id }) => ({ instance_id: instanceId, message_id: id })),
      )),
      ...(kind === 'event' ? await this.#findOtherEvents(tx, instanceId, ids) : []),
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

  // The conditions are checked again, because the rows may have changed since they were found.

  #findMessages(tx: Transaction, instanceId: InstanceId, ids: readonly MessageId[], before: number) {
    const query = this.#statements.db
      .selectFrom('messages as m')
      .select('m.id')
      .where('m.instance_id', '=', instanceId)
      .where('m.id', 'in', ids)
      .where(isErasable(before))
      .orderBy('m.id')
    // The lock makes a receipt, or a redelivery of an event, wait and then find nothing.
    return tx.query(this.#statements.locking(query, 'update', 'm'))
  }

  #findIncoming(tx: Transaction, instanceId: InstanceId, ids: readonly MessageId[]) {
    const query = this.#statements.db
      .selectFrom('incoming_messages as i')
      .select('i.id')
      .where('i.instance_id', '=', instanceId)
      .where('i.id', 'in', ids)
      .where(IS_ERASABLE_INCOMING)
      .orderBy('i.id')
    return tx.query(this.#statements.locking(query, 'update', 'i'))
  }

  #findOtherEvents(tx: Transaction, instanceId: InstanceId, ids: readonly EventId[]) {
    const query = this.#statements.db
      .selectFrom('events as e')
      .select(['e.id', 'e.message_id', 'e.seq'])
      .where('e.instance_id', '=', instanceId)
      .where('e.id', 'in', ids)
      .where(HAS_NO_MESSAGE)
      .where(EVENT_HAS_NO_OPEN_DELIVERY)
      .orderBy('e.id')
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
