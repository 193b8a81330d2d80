import { type RawBuilder, type Selectable, sql } from 'kysely'
import { firstMessageId, type InstanceId } from '../../domain/ids.ts'
import { parseRecipient } from '../../domain/recipients/recipient.ts'
import type { Core } from '../engine/core.ts'
import { idBefore, nameAfter, toPage } from '../engine/cursor.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { ContactsTable } from '../engine/schema/directory.ts'
import { searchPatterns } from '../engine/search-patterns.ts'
import { selectIncoming, toIncoming } from '../messages/incoming.ts'
import { FEW, type Slice, search } from '../messages/searching.ts'
import { listSent, toMessage } from '../messages/stored-messages.ts'
import { ChatLines, lineOf, type Names } from './chat-lines.ts'
import { findNames } from './chat-names.ts'
import type { Chat, ChatEntry, Conversations, InboxChat, Line, LineFilter } from './conversations.ts'
import { Inbox } from './inbox.ts'

export class StoredConversations implements Conversations {
  readonly #core: Core
  readonly #chatLines: ChatLines
  readonly #inbox: Inbox

  constructor(core: Core) {
    this.#core = core
    this.#chatLines = new ChatLines(core)
    this.#inbox = new Inbox(core)
  }

  async listLines(instanceId: InstanceId, page: PageRequest, filter: LineFilter = {}): Promise<Page<Line>> {
    const { chat, status, direction, since = 0, search: wanted } = filter
    const slice: Slice = { below: idBefore(page, 'msg'), from: firstMessageId(since) }
    const names = chat === undefined ? null : await findNames(this.#core, instanceId, chat)
    const limit = page.limit + 1
    const lines: Line[] = []
    const isWholeChat = names !== null && wanted === undefined
    if (direction !== 'in' && status !== 'received' && status !== 'written')
      lines.push(
        ...(isWholeChat && status === undefined
          ? await this.#chatLines.listSent(instanceId, slice, limit, names)
          : await this.#listSent(instanceId, slice, limit, names, status, wanted)),
      )
    const isWritten = whichWritten(direction, status)
    if (isWritten !== 'none')
      lines.push(
        ...(isWholeChat
          ? await this.#chatLines.listDelivered(instanceId, slice, limit, names, isWritten)
          : await this.#listDelivered(instanceId, slice, limit, names, isWritten, wanted)),
      )
    lines.sort((one, other) => (idOf(one) < idOf(other) ? 1 : -1))
    return toPage(lines, page.limit, idOf, line => line)
  }

  async listEntries(instanceId: InstanceId, page: PageRequest, chat: string): Promise<Page<ChatEntry>> {
    const slice: Slice = { below: idBefore(page, 'msg'), from: firstMessageId(0) }
    const names = await findNames(this.#core, instanceId, chat)
    const limit = page.limit + 1
    const [sent, received, commands] = await Promise.all([
      this.#chatLines.listSent(instanceId, slice, limit, names),
      this.#chatLines.listDelivered(instanceId, slice, limit, names),
      this.#chatLines.listCommands(instanceId, slice.below, limit, names),
    ])
    const all: ChatEntry[] = [
      ...sent,
      ...received,
      ...commands.map(command => ({ direction: 'command', command }) as const),
    ]
    const entries = all.map(entry => ({ entry, position: positionOf(entry) }))
    entries.sort((one, other) => (one.position < other.position ? 1 : -1))
    return toPage(
      entries,
      page.limit,
      ({ position }) => position,
      ({ entry }) => entry,
    )
  }

  async listInbox(instanceId: InstanceId, page: PageRequest, wanted?: string): Promise<Page<InboxChat>> {
    const { data, nextCursor } = await this.listChats(instanceId, page, wanted)
    const chats = await this.#inbox.complete(instanceId, data)
    // The recorded times are up to a minute old.
    const orderOf = ({ lastLine, lastMessageAt }: InboxChat) =>
      lastLine === null ? firstMessageId(lastMessageAt) : idOf(lastLine)
    return { data: chats.toSorted((one, other) => (orderOf(one) < orderOf(other) ? 1 : -1)), nextCursor }
  }

  async listChats(instanceId: InstanceId, page: PageRequest, wanted?: string): Promise<Page<Chat>> {
    const { reader, statements } = this.#core
    const after = nameAfter(page)
    let query = statements.db
      .selectFrom('contacts')
      .select(['number', 'last_at', 'lid', 'username', NAME.as('name')])
      .where('instance_id', '=', instanceId)
      .where('last_at', 'is not', null)
      // Its number became known later, and has a row of its own.
      .where(
        sql<boolean>`not exists (select 1 from contacts as c
          where c.instance_id = contacts.instance_id and c.lid = contacts.number and c.number <> contacts.number)`,
      )
      .orderBy('last_at', 'desc')
      .orderBy('number')
      .limit(page.limit + 1)
    if (after !== null)
      query = query.where(sql<boolean>`(last_at < ${after.seq} or (last_at = ${after.seq} and number > ${after.name}))`)
    if (wanted !== undefined) query = query.where(matches(wanted, column => statements.dialect.fold(column)))
    const rows = await reader.query(query)
    return toPage(rows, page.limit, row => `${row.last_at} ${row.number}`, toChat)
  }

  requestTyping(instanceId: InstanceId, chat: string, seconds: number): void {
    this.#core.hints.publish('typing', instanceId, `${seconds} ${chat}`)
  }

  async #listSent(
    instanceId: InstanceId,
    slice: Slice,
    limit: number,
    names: Names | null,
    status: Exclude<LineFilter['status'], 'received' | 'written'>,
    wanted: string | undefined,
  ): Promise<Line[]> {
    const conditions: RawBuilder<boolean>[] = []
    if (names !== null) {
      const [chats, addresses] = [sql.join(names.chats), sql.join([...names.addresses, ''])]
      conditions.push(sql`(recipient in (${chats}) or address in (${addresses}))`)
    }
    if (wanted !== undefined) conditions.push(this.#contains(wanted, 'text'))
    const rows = await listSent(this.#core, instanceId, slice, limit, status, conditions)
    return rows.map(row => ({ direction: 'out', message: toMessage(row) }))
  }

  /** Received messages, and those that the owner wrote on another device. @param isWritten null: both */
  async #listDelivered(
    instanceId: InstanceId,
    slice: Slice,
    limit: number,
    names: Names | null,
    isWritten: boolean | null,
    wanted: string | undefined,
  ): Promise<Line[]> {
    const { reader, statements } = this.#core
    const ids = ({ below, from }: Slice) =>
      statements.db
        .selectFrom('incoming_messages')
        .select('incoming_messages.id')
        .where('incoming_messages.instance_id', '=', instanceId)
        .where('incoming_messages.id', '<', below)
        .where('incoming_messages.id', '>=', from)
        .orderBy('incoming_messages.id', 'desc')
    const find = (part: Slice, count: number, among: number) => {
      let query = selectIncoming(statements)
        .where('incoming_messages.instance_id', '=', instanceId)
        .where(statements.dialect.isAmong('incoming_messages.id', ids(part).limit(among)))
        .orderBy('incoming_messages.id', 'desc')
        .limit(count)
      if (names !== null) query = query.where('incoming_messages.chat', 'in', names.chats)
      if (isWritten !== null) query = query.where('incoming_messages.written', isWritten ? 'is not' : 'is', null)
      if (wanted !== undefined) query = query.where(this.#contains(wanted, 'incoming_messages.text'))
      return reader.query(query)
    }
    const edge = async (part: Slice, distance: number) =>
      (await reader.query(ids(part).offset(distance).limit(1)))[0]?.id ?? null
    const isWhole = names === null && isWritten === null && wanted === undefined
    const rows = isWhole ? await find(slice, limit, limit) : await search(slice, limit, edge, find, FEW)
    return rows.map(row => lineOf(toIncoming(row)))
  }

  /** Received texts are compared as JSON strings, like names. */
  #contains(wanted: string, column: 'text' | 'incoming_messages.text'): RawBuilder<boolean> {
    const text = this.#core.statements.dialect.fold(sql`coalesce(${sql.ref(column)}, '')`)
    const { words, encoded } = searchPatterns(wanted)
    return sql<boolean>`${text} like ${column === 'text' ? words : encoded} escape '\\'`
  }
}

/** The IDs of messages and of commands differ in their first letters only. */
function positionOf(entry: ChatEntry): string {
  return entry.direction === 'command' ? entry.command.id.replace('cmd_', 'msg_') : idOf(entry)
}

function idOf(line: Line): string {
  return line.direction === 'out' ? line.message.id : line.message.messageId
}

/** Which messages that WhatsApp delivered the filter shows; null for all. */
function whichWritten(direction: LineFilter['direction'], status: LineFilter['status']): boolean | null | 'none' {
  if (status !== undefined && status !== 'received' && status !== 'written') return 'none'
  const byStatus = status === undefined ? null : status === 'written'
  const byDirection = direction === undefined ? null : direction === 'out'
  if (byStatus !== null && byDirection !== null && byStatus !== byDirection) return 'none'
  return byStatus ?? byDirection
}

/** A group's subject; else the name in the phone's address book, or the push name. */
const NAME = sql<string | null>`coalesce(
  (select g.subject from groups as g where g.instance_id = contacts.instance_id and g.id = contacts.number),
  saved_name, name)`

/** Names are compared as JSON strings, without the quotes around them. */
function matches(wanted: string, fold: (text: RawBuilder<string>) => RawBuilder<string>): RawBuilder<boolean> {
  const { encoded, number } = searchPatterns(wanted)
  const isIn = (column: string) => sql`${fold(sql`coalesce(${sql.ref(column)}, '')`)} like ${encoded} escape '\\'`
  return sql<boolean>`(number like ${number} escape '\\' or ${isIn('name')} or ${isIn('username')}
    or search_saved like ${encoded} escape '\\' or exists (select 1 from groups as g
      where g.instance_id = contacts.instance_id and g.id = contacts.number and g.search_name like ${encoded} escape '\\'))`
}

function toChat({
  number,
  lid,
  username,
  name,
  last_at,
}: Pick<Selectable<ContactsTable>, 'number' | 'last_at' | 'lid' | 'username' | 'name'>): Chat {
  const recipient = parseRecipient(number)
  return {
    chat: number,
    phone: recipient?.kind === 'number' ? number : null,
    lid: recipient?.kind === 'lid' ? number : lid,
    username: username === null ? null : JSON.parse(username),
    name: name === null ? null : JSON.parse(name),
    lastMessageAt: last_at!,
  }
}
