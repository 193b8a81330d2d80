import { setImmediate } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { otherSpelling } from '../../domain/recipients/recipient.ts'
import { type Names, namesOf } from '../conversations/chat-lines.ts'
import { findNames } from '../conversations/chat-names.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { oneByOne } from '../engine/operation.ts'
import { IS_QUEUED } from '../engine/schema/messages.ts'
import type { Statements } from '../engine/statement.ts'
import { FileRows } from '../media/file-rows.ts'
import { chatOf } from '../numbers/contacts.ts'
import type { ErasedContact } from './retention.ts'

/** Messages in one commit. */
const STEP = 50
/** Messages that are read at once to find what somebody wrote in groups. */
const WINDOW = 1_000
/** Above the IDs of all messages and commands. */
const ABOVE_ALL = 'msh'
/** Idempotency keys last a day and name their message, so younger messages stay. */
const YOUNG_MS = 25 * 60 * 60_000

/** A message in either direction. */
interface Found {
  id: string
  direction: 'out' | 'in'
}

interface Step {
  instanceId: InstanceId
  messages: readonly Found[]
  now: number
}

/**
 * Erases what is stored of one contact in small commits, the newest messages first. After a kill it can be repeated. What is
 * still being sent or posted stays, and is counted.
 *
 * An event keeps its row, because it prevents recording its message twice and the feed numbers it. Its body loses everything
 * but the ID of the message.
 */
export class ContactErasure {
  readonly #core: Core
  readonly #step
  readonly #forget

  constructor(core: Core) {
    this.#core = core
    const eraser = new ContactEraser(core.statements)
    const instanceOf = ({ instanceId }: { instanceId: InstanceId }) => instanceId
    this.#step = oneByOne('contacts.erase', instanceOf, (tx, step: Step) => eraser.erase(tx, step))
    this.#forget = oneByOne('contacts.forget', instanceOf, (tx, input: { instanceId: InstanceId; names: Names }) =>
      eraser.forget(tx, input.instanceId, input.names),
    )
  }

  async erase(instanceId: InstanceId, contact: string, now: number): Promise<ErasedContact> {
    const names = await this.#findNames(instanceId, contact)
    const total: ErasedContact = { messages: 0, events: 0, files: 0, kept: 0 }
    const eraseAll = async (messages: readonly Found[]) => {
      if (messages.length === 0) return
      const erased = await this.#core.write(this.#step, { instanceId, messages, now })
      for (const name of ['messages', 'events', 'files', 'kept'] as const) total[name] += erased[name]
    }
    for (let below = ABOVE_ALL; ; ) {
      const messages = await this.#findInChat(instanceId, names, below)
      await eraseAll(messages)
      if (messages.length < STEP) break
      below = messages.at(-1)!.id
      await setImmediate()
    }
    for (let below: string | null = ABOVE_ALL; below !== null; ) {
      const part = await this.#findInGroups(instanceId, names, below)
      for (let at = 0; at < part.found.length; at += STEP) await eraseAll(part.found.slice(at, at + STEP))
      below = part.next
      // On SQLite reads do not let other calls take their turn.
      await setImmediate()
    }
    // The names are needed to find what is left.
    if (total.kept === 0) await this.#core.write(this.#forget, { instanceId, names })
    this.#core.traces.note()
    // Fails while another process reads the file. The next retention step then does it.
    await this.#core.traces.erase().catch(() => undefined)
    return total
  }

  /** All names of the contact. Another spelling of the number counts only if a message or a look-up shows it. */
  async #findNames(instanceId: InstanceId, contact: string): Promise<Names> {
    const { chats } = await findNames(this.#core, instanceId, contact)
    const spellings = chats.flatMap(chat => otherSpelling(chat) ?? [])
    if (spellings.length === 0) return namesOf(...chats)
    const possible = namesOf(...chats, ...spellings)
    const [names, addresses] = [sql.join(possible.chats), sql.join(possible.addresses)]
    const pairs = await this.#read(sql<{ name: string; address: string }>`
      select distinct recipient as name, address from messages
      where instance_id = ${instanceId} and address is not null and address in (${addresses}) and recipient in (${names})
      union select number as name, address from numbers
      where instance_id = ${instanceId} and number in (${names}) and address in (${addresses})`)
    const same = pairs
      .map(({ name, address }) => [name, chatOf(address)])
      .filter(pair => pair.some(name => chats.includes(name)))
      .flat()
    const all = await Promise.all(same.map(name => findNames(this.#core, instanceId, name)))
    return namesOf(...chats, ...all.flatMap(found => found.chats))
  }

  /** Messages and commands of the chat below an ID, the highest first. */
  async #findInChat(instanceId: InstanceId, { chats, addresses }: Names, below: string): Promise<Found[]> {
    const part = (table: 'messages' | 'incoming_messages', condition: RawBuilder<unknown>) => sql`select * from (
      select id, ${sql.lit(table === 'messages' ? 'out' : 'in')} as direction from ${sql.table(table)}
      where instance_id = ${instanceId} and id < ${below} and ${condition} order by id desc limit ${sql.lit(STEP)}) as part`
    // Each part has an index of its own (`ChatLines`).
    const parts = [
      ...addresses.map(address => part('messages', sql`address = ${address} and address is not null`)),
      ...chats.map(chat => part('messages', sql`failed_at is not null and address is null and recipient = ${chat}`)),
      part('messages', sql`${IS_QUEUED} and address is null and recipient in (${sql.join(chats)})`),
      ...chats.map(chat => part('incoming_messages', sql`chat = ${chat}`)),
    ]
    const query = sql<Found>`select id, direction from (${sql.join(parts, sql` union all `)}) as parts
      order by id desc limit ${sql.lit(STEP)}`
    return this.#read(query)
  }

  /** Finds the person's messages in groups, among the next messages below an ID. There is no index for them. */
  async #findInGroups(instanceId: InstanceId, { chats }: Names, below: string) {
    const digits = chats.map(chat => chat.replace(/@.*/, ''))
    const rows = await this.#read(sql<{
      id: string
      isTheirs: number
    }>`select id, case when chat not in (${sql.join(chats)}) and (lid in (${sql.join(chats)})
        or (sender in (${sql.join(digits)}) and written is null)) then 1 else 0 end as "isTheirs"
      from incoming_messages where instance_id = ${instanceId} and id < ${below} order by id desc limit ${sql.lit(WINDOW)}`)
    const found = rows.filter(({ isTheirs }) => isTheirs === 1).map(({ id }): Found => ({ id, direction: 'in' }))
    return { found, next: rows.length < WINDOW ? null : rows.at(-1)!.id }
  }

  #read<R>(query: RawBuilder<R>): Promise<R[]> {
    const { reader, statements } = this.#core
    return reader.query<R>({ compile: () => query.compile(statements.db) })
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
    const old = now - YOUNG_MS
    const sent = (await tx.each(this.#prepared.findSent, keysOf('out'))).filter(
      row => row.state !== 'queued' && row.created_at < old && (row.not_before ?? 0) < old,
    )
    const received = await tx.each(this.#prepared.findReceived, keysOf('in'))
    const found = [...sent, ...received].map(({ id }) => ({ instance_id: instanceId, message_id: id }))
    const events = await tx.each(this.#prepared.findEvents, found)
    const eventKeys = events.map(({ id }) => ({ instance_id: instanceId, event_id: id }))
    const open = new Set((await tx.each(this.#prepared.findOpen, eventKeys)).map(row => row.event_id))
    const posted = new Set(events.filter(({ id }) => open.has(id)).map(event => event.message_id))
    const goes = ({ id }: { id: string }) => !posted.has(id)
    const erasedEvents = events.filter(event => !posted.has(event.message_id))
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
    const files = received.filter(goes).flatMap(({ media_id }) => (media_id === null ? [] : [media_id]))
    for (const id of files) await this.#eraseFile(tx, instanceId, id, now)
    const keys = (rows: readonly { id: string }[]) =>
      rows.filter(goes).map(({ id }) => ({ instance_id: instanceId, id }))
    const gone = [
      ...(await tx.each(this.#prepared.removeSent, keys(sent))),
      ...(await tx.each(this.#prepared.removeReceived, keys(received))),
    ]
    const kept = messages.length - gone.length
    return { messages: gone.length, events: erasedEvents.length, files: files.length, kept }
  }

  async #eraseFile(tx: Transaction, instanceId: InstanceId, id: string, now: number): Promise<void> {
    const query = this.#statements.db
      .selectFrom('media')
      .select(['instance_id', 'id', 'file_id'])
      .where('gone_at', 'is', null)
      .where('instance_id', '=', instanceId)
      .where('id', '=', id)
    const [medium] = await tx.query(this.#statements.locking(query, 'update', 'media'))
    if (medium !== undefined) await this.#files.letGo(tx, medium, 'erased', now)
  }

  /** Erases other rows that name the contact. @returns true */
  async forget(tx: Transaction, instanceId: InstanceId, { chats }: Names): Promise<boolean> {
    const { db } = this.#statements
    await tx.query(db.deleteFrom('contacts').where('instance_id', '=', instanceId).where('number', 'in', chats))
    for (const table of ['numbers', 'number_orders'] as const)
      await tx.query(db.deleteFrom(table).where('instance_id', '=', instanceId).where('number', 'in', chats))
    await tx.query(
      db
        .updateTable('pace_uses')
        .set({ recipient: null })
        .where('instance_id', '=', instanceId)
        .where('recipient', 'in', chats),
    )
    return true
  }
}

/** The event without what it says about the contact. */
function blanked(body: string, messageId: string | null): string {
  const { data, ...envelope } = JSON.parse(body) as { data: unknown }
  return JSON.stringify({ ...envelope, data: { id: messageId, erased: true } })
}

function prepare(statements: Statements) {
  const row = { instance_id: 'text', id: 'text' } as const
  const ofEvent = { instance_id: 'text', event_id: 'text' } as const
  const lock = { lock: 'update' } as const
  return {
    findSent: statements.find('messages', row, ['id', 'state', 'created_at', 'not_before'], lock),
    findReceived: statements.find('incoming_messages', row, ['id', 'media_id'], lock),
    findEvents: statements.find(
      'events',
      { instance_id: 'text', message_id: 'text' },
      ['id', 'message_id', 'body'],
      lock,
    ),
    findOpen: statements.find('deliveries', ofEvent, ['event_id']),
    blank: statements.update('events', row, { body: 'text' }),
    removeAttempts: statements.remove('attempts', ofEvent),
    removeSent: statements.remove('messages', row),
    removeReceived: statements.remove('incoming_messages', row),
  }
}
