import { type RawBuilder, type Selectable, sql } from 'kysely'
import { firstMessageId, type InstanceId } from '../../domain/ids.ts'
import { parseRecipient } from '../../domain/recipients/recipient.ts'
import type { Core } from '../engine/core.ts'
import { countFitting, idBefore, nameAfter, toPage } from '../engine/cursor.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { ContactsTable } from '../engine/schema/directory.ts'
import { searchPatterns } from '../engine/search-patterns.ts'
import { FEW, type Slice, search, searchWindows } from '../messages/searching.ts'
import { findSentInSlice } from '../messages/sent-rows.ts'
import { BYTES, type FoundMessage } from '../messages/sizes.ts'
import { numbersOfLid } from '../numbers/contacts.ts'
import { listFiles } from './chat-files.ts'
import { ChatLines, type Names } from './chat-lines.ts'
import { findNames } from './chat-names.ts'
import type { Chat, ChatEntry, Conversations, InboxChat, Line, LineFilter } from './conversations.ts'
import { Inbox } from './inbox.ts'
import { readEntries } from './read-entries.ts'

/** Chats that a search checks in one query. */
const CHATS_IN_WINDOW = 1_000

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
    const found: FoundMessage[] = []
    const isWholeChat = names !== null && wanted === undefined
    if (direction !== 'in' && status !== 'received' && status !== 'written')
      found.push(
        ...(isWholeChat && status === undefined
          ? await this.#chatLines.findSent(instanceId, slice, limit, names)
          : await this.#findSent(instanceId, slice, limit, names, status, wanted)),
      )
    const isWritten = whichWritten(direction, status)
    if (isWritten !== 'none')
      found.push(
        ...(isWholeChat
          ? await this.#chatLines.findDelivered(instanceId, slice, limit, names, isWritten)
          : await this.#findDelivered(instanceId, slice, limit, names, isWritten, wanted)),
      )
    const { data, nextCursor } = await this.#readPage(instanceId, found, page)
    return { data: data.filter(entry => entry.direction !== 'command'), nextCursor }
  }

  async listFiles(instanceId: InstanceId, page: PageRequest, chat: string): Promise<Page<string>> {
    return listFiles(this.#core, instanceId, page, await findNames(this.#core, instanceId, chat))
  }

  async listEntries(instanceId: InstanceId, page: PageRequest, chat: string): Promise<Page<ChatEntry>> {
    const slice: Slice = { below: idBefore(page, 'msg'), from: firstMessageId(0) }
    const names = await findNames(this.#core, instanceId, chat)
    const limit = page.limit + 1
    const found = await Promise.all([
      this.#chatLines.findSent(instanceId, slice, limit, names),
      this.#chatLines.findDelivered(instanceId, slice, limit, names),
      this.#chatLines.findCommands(instanceId, slice.below, limit, names),
    ])
    return this.#readPage(instanceId, found.flat(), page)
  }

  /** @param found rows of several queries. Each query returns one row more than the limit if there is another page */
  async #readPage(
    instanceId: InstanceId,
    found: readonly FoundMessage[],
    { limit }: PageRequest,
  ): Promise<Page<ChatEntry>> {
    const sorted = found.toSorted((one, other) => (positionOf(one) < positionOf(other) ? 1 : -1))
    const { data, nextCursor } = toPage(sorted, countFitting(sorted, limit), positionOf, row => row)
    const entries: ChatEntry[] = []
    for await (const { entry } of readEntries(this.#core, instanceId, data)) entries.push(entry)
    return { data: entries, nextCursor }
  }

  async listInbox(
    instanceId: InstanceId,
    page: PageRequest,
    wanted?: string,
    unreadSince = 0,
  ): Promise<Page<InboxChat>> {
    const rows = await this.#findChats(instanceId, page, wanted)
    const chats = await this.#inbox.complete(instanceId, rows.slice(0, page.limit).map(toChat), unreadSince)
    const { nextCursor } = toPage(rows, chats.length, positionOfChat, toChat)
    // `lastMessageAt` is accurate only to about a minute, so the last lines determine the order.
    const orderOf = ({ lastLine, lastMessageAt }: InboxChat) =>
      lastLine === null ? firstMessageId(lastMessageAt) : idOf(lastLine)
    return { data: chats.toSorted((one, other) => (orderOf(one) < orderOf(other) ? 1 : -1)), nextCursor }
  }

  async listChats(instanceId: InstanceId, page: PageRequest, wanted?: string): Promise<Page<Chat>> {
    return toPage(await this.#findChats(instanceId, page, wanted), page.limit, positionOfChat, toChat)
  }

  requestTyping(instanceId: InstanceId, chat: string, seconds: number): void {
    this.#core.hints.publish('typing', instanceId, `${seconds} ${chat}`)
  }

  /** A search reads window by window, because no index contains the names. */
  async #findChats(instanceId: InstanceId, page: PageRequest, wanted: string | undefined): Promise<ChatRow[]> {
    const limit = page.limit + 1
    const window = wanted === undefined ? limit : Math.max(limit, CHATS_IN_WINDOW)
    const found: ChatRow[] = []
    for (let after = nameAfter(page); ; ) {
      if (wanted !== undefined) await searchWindows.take(instanceId)
      const rows = await this.#core.reader.query(this.#chatsAfter(instanceId, after, window, wanted))
      found.push(...rows.filter(({ is_found }) => is_found === 1))
      const last = rows.at(-1)
      if (last === undefined || rows.length < window || found.length >= limit) return found.slice(0, limit)
      after = { seq: last.last_at!, name: last.number }
    }
  }

  #chatsAfter(
    instanceId: InstanceId,
    after: { seq: number; name: string } | null,
    limit: number,
    wanted: string | undefined,
  ) {
    const { db, dialect } = this.#core.statements
    const isFound = wanted === undefined ? sql<boolean>`true` : matches(wanted, column => dialect.fold(column))
    const query = db
      .selectFrom('contacts')
      .select(['number', 'last_at', 'lid', 'username', NAME.as('name')])
      .select(sql<number>`case when ${isFound} then 1 else 0 end`.as('is_found'))
      .where('instance_id', '=', instanceId)
      .where('last_at', 'is not', null)
      // Leaves out a LID whose number became known later, if the number is listed itself.
      .where(
        sql<boolean>`not exists (select 1 from contacts as c where c.instance_id = contacts.instance_id
          and c.number <> contacts.number and c.last_at is not null
          and c.number in ${numbersOfLid('contacts.instance_id', 'contacts.number')})`,
      )
      .orderBy('last_at', 'desc')
      .orderBy('number')
      .limit(limit)
    if (after === null) return query
    // The first condition is for the index.
    return query
      .where('last_at', '<=', after.seq)
      .where(sql<boolean>`(last_at < ${after.seq} or number > ${after.name})`)
  }

  async #findSent(
    instanceId: InstanceId,
    slice: Slice,
    limit: number,
    names: Names | null,
    status: Exclude<LineFilter['status'], 'received' | 'written'>,
    wanted: string | undefined,
  ): Promise<FoundMessage[]> {
    const conditions: RawBuilder<boolean>[] = []
    if (names !== null) {
      const [chats, addresses] = [sql.join(names.chats), sql.join([...names.addresses, ''])]
      conditions.push(sql`(recipient in (${chats}) or address in (${addresses}))`)
    }
    if (wanted !== undefined) conditions.push(this.#contains(wanted, 'text'))
    return findSentInSlice(this.#core, instanceId, slice, limit, status, conditions)
  }

  /** Received messages, and those that the owner wrote on another device. @param isWritten null: both */
  async #findDelivered(
    instanceId: InstanceId,
    slice: Slice,
    limit: number,
    names: Names | null,
    isWritten: boolean | null,
    wanted: string | undefined,
  ): Promise<FoundMessage[]> {
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
      let query = statements.db
        .selectFrom('incoming_messages')
        .select(['incoming_messages.id', BYTES.incoming_messages.as('bytes')])
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
    const rows = isWhole ? await find(slice, limit, limit) : await search(instanceId, slice, limit, edge, find, FEW)
    return rows.map(row => ({ ...row, table: 'incoming_messages' }))
  }

  /** Received texts are compared as JSON strings, like names. */
  #contains(wanted: string, column: 'text' | 'incoming_messages.text'): RawBuilder<boolean> {
    const text = this.#core.statements.dialect.fold(sql`coalesce(${sql.ref(column)}, '')`)
    const { words, encoded } = searchPatterns(wanted)
    return sql<boolean>`${text} like ${column === 'text' ? words : encoded} escape '\\'`
  }
}

/** The IDs of messages and of commands differ in their first letters only. */
function positionOf({ id }: FoundMessage): string {
  return id.replace('cmd_', 'msg_')
}

function idOf(line: Line): string {
  return line.direction === 'out' ? line.message.id : line.message.messageId
}

/** Which delivered messages the filter selects: true for written ones, false for received ones, null for all. */
function whichWritten(direction: LineFilter['direction'], status: LineFilter['status']): boolean | null | 'none' {
  if (status !== undefined && status !== 'received' && status !== 'written') return 'none'
  const byStatus = status === undefined ? null : status === 'written'
  const byDirection = direction === undefined ? null : direction === 'out'
  if (byStatus !== null && byDirection !== null && byStatus !== byDirection) return 'none'
  return byStatus ?? byDirection
}

/** A group's subject; else the name in the phone's address book, or the push name. */
const NAME = sql<string | null>`coalesce(
  (select nullif(g.subject, '""') from groups as g where g.instance_id = contacts.instance_id and g.id = contacts.number),
  saved_name, name)`

/** Names are compared as JSON strings, without the quotes around them. */
function matches(wanted: string, fold: (text: RawBuilder<string>) => RawBuilder<string>): RawBuilder<boolean> {
  const { encoded, number } = searchPatterns(wanted)
  const isIn = (column: string) => sql`${fold(sql`coalesce(${sql.ref(column)}, '')`)} like ${encoded} escape '\\'`
  return sql<boolean>`(number like ${number} escape '\\' or ${isIn('name')} or ${isIn('username')}
    or search_saved like ${encoded} escape '\\' or exists (select 1 from groups as g
      where g.instance_id = contacts.instance_id and g.id = contacts.number and g.search_name like ${encoded} escape '\\'))`
}

type ChatRow = Pick<Selectable<ContactsTable>, 'number' | 'last_at' | 'lid' | 'username' | 'name'>

function positionOfChat({ last_at, number }: ChatRow): string {
  return `${last_at} ${number}`
}

function toChat({ number, lid, username, name, last_at }: ChatRow): Chat {
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
