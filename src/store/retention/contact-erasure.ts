import type { Selectable } from 'kysely'
import type { MessageExtras } from '../../domain/conversation.ts'
import type { InstanceId } from '../../domain/ids.ts'
import type { Names } from '../conversations/chat-lines.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { oneByOne } from '../engine/operation.ts'
import type { MessagesTable } from '../engine/schema/messages.ts'
import type { Statements } from '../engine/statement.ts'
import { FileRows } from '../media/file-rows.ts'
import { ContactRows, type Found, NAMING_TABLES, rowsOfChat } from './contact-rows.ts'
import { blanked, type NamingEvent, NamingEvents, split } from './naming-events.ts'
import type { ErasedContact } from './retention.ts'
import { withoutQuote } from './without-quote.ts'

/** Idempotency keys are valid for a day and name their message, so younger messages stay. */
const YOUNG_MS = 25 * 60 * 60_000

/** The columns that decide whether a sent message may be erased. */
const SETTLEMENT = ['id', 'state', 'created_at', 'not_before', 'sent_at', 'failed_at'] as const
type Settlement = Pick<Selectable<MessagesTable>, (typeof SETTLEMENT)[number]>

interface Step {
  instanceId: InstanceId
  messages: readonly Found[]
  now: number
}

interface EventStep {
  instanceId: InstanceId
  events: readonly NamingEvent[]
  names: Names
}

interface LastStep {
  instanceId: InstanceId
  names: Names
  /** How many messages and events the earlier steps kept. */
  kept: number
}

/**
 * Erases the stored data of one contact in small commits, the newest messages first. After a kill, it can be repeated.
 * Rows that must stay for now (see `Retention.eraseContact`) are counted as `kept`. Replies and read marks in groups keep
 * their rows, without the person.
 *
 * An event keeps its row, because the row prevents recording its message twice and the feed numbers it. Its `data`
 * keeps only the ID of the message. In an event about the members of a group, only this member is erased.
 */
export class ContactErasure {
  readonly #core: Core
  readonly #rows: ContactRows
  readonly #events: NamingEvents
  readonly #step
  readonly #eventStep
  readonly #forget

  constructor(core: Core) {
    this.#core = core
    this.#rows = new ContactRows(core)
    this.#events = new NamingEvents(core)
    const eraser = new ContactEraser(core.statements)
    const instanceOf = ({ instanceId }: { instanceId: InstanceId }) => instanceId
    this.#step = oneByOne('contacts.erase', instanceOf, (tx, step: Step) => eraser.erase(tx, step))
    this.#eventStep = oneByOne('contacts.eraseNaming', instanceOf, (tx, step: EventStep) =>
      eraser.eraseNaming(tx, step),
    )
    this.#forget = oneByOne('contacts.forget', instanceOf, (tx, step: LastStep) => eraser.forget(tx, step))
  }

  async erase(instanceId: InstanceId, contact: string, now: number): Promise<ErasedContact> {
    const names = await this.#rows.findNames(instanceId, contact)
    const total: ErasedContact = { messages: 0, events: 0, files: 0, kept: 0 }
    for await (const messages of this.#rows.walk(instanceId, names)) {
      const erased = await this.#core.write(this.#step, { instanceId, messages, now })
      for (const name of ['messages', 'events', 'files', 'kept'] as const) total[name] += erased[name]
    }
    for await (const events of this.#events.walk(instanceId, names)) {
      const erased = await this.#core.write(this.#eventStep, { instanceId, events, names })
      total.events += erased.events
      total.kept += erased.kept
    }
    total.kept = await this.#core.write(this.#forget, { instanceId, names, kept: total.kept })
    this.#core.traces.note()
    // Removes the deleted rows from the database's write-ahead log. If another process is reading the database, this fails silently, and a later
    // retention step repeats it.
    await this.#core.traces.erase().catch(() => undefined)
    return total
  }
}

class ContactEraser {
  readonly #statements: Statements
  readonly #files: FileRows
  readonly #prepared

  constructor(statements: Statements) {
    this.#statements = statements
    this.#files = new FileRows(statements)
    this.#prepared = prepare(statements)
  }

  async erase(tx: Transaction, { instanceId, messages, now }: Step): Promise<ErasedContact> {
    const keysOf = (direction: Found['direction']) =>
      messages.filter(row => row.direction === direction).map(({ id }) => ({ instance_id: instanceId, id }))
    // The locks make a receipt, or a redelivery of an event, wait.
    const settled = (await tx.each(this.#prepared.findSent, keysOf('out'))).filter(row => mayGo(row, now))
    const stays = new Map(messages.map(row => [row.id, row.stays]))
    const sent = settled.filter(({ id }) => stays.get(id) !== 'answer')
    const received = await tx.each(this.#prepared.findReceived, keysOf('in'))
    const found = [...sent, ...received].map(({ id }) => ({ instance_id: instanceId, message_id: id }))
    const events = await tx.each(this.#prepared.findEvents, found)
    const eventKeys = events.map(({ id }) => ({ instance_id: instanceId, event_id: id }))
    const open = new Set((await tx.each(this.#prepared.findOpen, eventKeys)).map(row => row.event_id))
    const posted = new Set(events.filter(({ id }) => open.has(id)).map(event => event.message_id))
    const files = await this.#findFiles(tx, instanceId, received)
    const needed = received.filter(({ media_id }) => media_id !== null && files.inUse.has(media_id))
    const kept = new Set([...posted, ...needed.map(({ id }) => id)])
    const goes = ({ id }: { id: string }) => !kept.has(id)
    const erasedEvents = events.filter(event => !kept.has(event.message_id))
    await tx.each(
      this.#prepared.blank,
      erasedEvents.map(({ id, body, message_id }) => ({
        instance_id: instanceId,
        id,
        body: blanked(body, message_id),
      })),
    )
    await tx.each(
      this.#prepared.removeAttempts,
      erasedEvents.map(({ id }) => ({ instance_id: instanceId, event_id: id })),
    )
    const erasedFiles = received.filter(goes).flatMap(({ media_id }) => media_id ?? [])
    for (const medium of files.free)
      if (erasedFiles.includes(medium.id)) await this.#files.letGo(tx, medium, 'erased', now)
    const keys = (rows: readonly { id: string }[]) =>
      rows.filter(goes).map(({ id }) => ({ instance_id: instanceId, id }))
    const changed = settled.filter(({ id }) => stays.get(id) === 'answer' || (stays.get(id) === 'mark' && goes({ id })))
    await this.#removePerson(tx, instanceId, changed)
    const gone = [
      ...(await tx.each(this.#prepared.removeSent, keys(sent.filter(({ id }) => stays.get(id) === undefined)))),
      ...(await tx.each(this.#prepared.removeReceived, keys(received))),
    ]
    const counts = { messages: gone.length, events: erasedEvents.length, files: erasedFiles.length }
    return { ...counts, kept: messages.length - gone.length - changed.length }
  }

  /** Removes the person from answers and read marks in groups. */
  async #removePerson(tx: Transaction, instance_id: InstanceId, changed: readonly { id: string }[]): Promise<void> {
    const keys = changed.map(({ id }) => ({ instance_id, id }))
    const rows = (await tx.each(this.#prepared.findContent, keys)).map(({ id, extras, content }) => {
      const { quote, command, ...others }: MessageExtras = JSON.parse(extras ?? '{}')
      const rest = {
        ...(command && { command: { ...command, target: { ...command.target, author: null } } }),
        ...others,
        // Events of a message that went out without its quote say so.
        ...(quote?.dropped && { quote: { ...quote, author: null } }),
      }
      const isEmpty = Object.keys(rest).length === 0
      return {
        instance_id,
        id,
        extras: isEmpty ? null : JSON.stringify(rest),
        content: content && withoutQuote(content),
      }
    })
    await tx.each(this.#prepared.rewrite, rows)
  }

  /** Removes the contact from events that no stored message leads to. */
  async eraseNaming(tx: Transaction, { instanceId, events, names }: EventStep) {
    const keys = events.map(({ id }) => ({ instance_id: instanceId, id }))
    const locked = await tx.each(this.#prepared.findEvent, keys)
    const ofEvents = locked.map(({ id }) => ({ instance_id: instanceId, event_id: id }))
    const open = new Set((await tx.each(this.#prepared.findOpen, ofEvents)).map(row => row.event_id))
    const changed = locked.flatMap(({ id, body, message_id: messageId }) => {
      const parts = open.has(id) ? null : split({ body, messageId }, names)
      return parts === null ? [] : [{ instance_id: instanceId, id, body: parts.others }]
    })
    await tx.each(this.#prepared.blank, changed)
    await tx.each(
      this.#prepared.removeAttempts,
      changed.map(({ id }) => ({ instance_id: instanceId, event_id: id })),
    )
    return { events: changed.length, kept: open.size }
  }

  /** Locks the files of received messages. @returns those that may be erased, and the IDs of those in queued messages */
  async #findFiles(tx: Transaction, instanceId: InstanceId, received: readonly { media_id: string | null }[]) {
    const ids = received.flatMap(({ media_id }) => media_id ?? [])
    if (ids.length === 0) return { free: [], inUse: new Set<string>() }
    const query = this.#statements.db
      .selectFrom('media')
      .select(['instance_id', 'id', 'file_id'])
      .where('gone_at', 'is', null)
      .where('instance_id', '=', instanceId)
      .where('id', 'in', ids)
      .orderBy('id')
    const media = await tx.query(this.#statements.locking(query, 'update', 'media'))
    const free = await this.#files.withoutQueued(tx, media)
    const inUse = new Set(media.map(({ id }) => id))
    for (const { id } of free) inUse.delete(id)
    return { free, inUse }
  }

  /**
   * Erases other rows that name the contact. If messages or events were kept, or the chat has messages again, it only erases the
   * person's names in these rows: a later call needs the rows to find the kept messages under every number and LID.
   * @returns how many messages and events stay
   */
  async forget(tx: Transaction, { instanceId, names, kept }: LastStep): Promise<number> {
    const { db } = this.#statements
    const { chats } = names
    const contacts = db
      .selectFrom('contacts')
      .select('number')
      .where('instance_id', '=', instanceId)
      .where('number', 'in', chats)
      .orderBy('number')
    // A message that is recorded later waits, and then inserts the row of its chat again.
    await tx.query(this.#statements.locking(contacts, 'update', 'contacts'))
    const found = kept > 0 ? [] : await tx.query({ compile: () => rowsOfChat(instanceId, names).compile(db) })
    const left = kept + found.length
    if (left > 0) {
      const unnamed = { username: null, name: null, search_name: null, saved_name: null, search_saved: null }
      await tx.query(
        db.updateTable('contacts').set(unnamed).where('instance_id', '=', instanceId).where('number', 'in', chats),
      )
      return left
    }
    for (const table of NAMING_TABLES)
      await tx.query(db.deleteFrom(table).where('instance_id', '=', instanceId).where('number', 'in', chats))
    await tx.query(
      db
        .updateTable('pace_uses')
        .set({ recipient: null })
        .where('instance_id', '=', instanceId)
        .where('recipient', 'in', chats),
    )
    return 0
  }
}

function mayGo(row: Settlement, now: number): boolean {
  const old = now - YOUNG_MS
  if (row.state === 'queued' || row.created_at >= old) return false
  // The key of a scheduled message is valid for a day after the message was sent or has failed.
  return row.not_before === null || Math.max(row.not_before, row.sent_at ?? row.failed_at ?? 0) < old
}

function prepare(statements: Statements) {
  const row = { instance_id: 'text', id: 'text' } as const
  const ofEvent = { instance_id: 'text', event_id: 'text' } as const
  const lock = { lock: 'update' } as const
  return {
    findSent: statements.find('messages', row, SETTLEMENT, lock),
    findContent: statements.find('messages', row, ['id', 'extras', 'content']),
    rewrite: statements.update('messages', row, { extras: 'text?', content: 'blob?' }),
    findReceived: statements.find('incoming_messages', row, ['id', 'media_id'], lock),
    findEvents: statements.find(
      'events',
      { instance_id: 'text', message_id: 'text' },
      ['id', 'message_id', 'body'],
      lock,
    ),
    findEvent: statements.find('events', row, ['id', 'message_id', 'body'], lock),
    findOpen: statements.find('deliveries', ofEvent, ['event_id']),
    blank: statements.update('events', row, { body: 'text' }),
    removeAttempts: statements.remove('attempts', ofEvent),
    removeSent: statements.remove('messages', row),
    removeReceived: statements.remove('incoming_messages', row),
  }
}
