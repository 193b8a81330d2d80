import { type RawBuilder, type Selectable, sql } from 'kysely'
import { firstMessageId, type InstanceId } from '../../domain/ids.ts'
import { parseRecipient } from '../../domain/recipient.ts'
import type { Core } from '../engine/core.ts'
import { idBefore, nameAfter, toPage } from '../engine/cursor.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { ContactsTable } from '../engine/schema/health.ts'
import { searchPatterns } from '../engine/search-patterns.ts'
import { selectIncoming, toIncoming } from '../messages/incoming.ts'
import { messageIds } from '../messages/message-ids.ts'
import { FEW, type Slice, search } from '../messages/searching.ts'
import { SHOWN, toMessage } from '../messages/stored-messages.ts'
import type { Chat, Conversations, Line, LineFilter } from './conversations.ts'

/** All names of one chat. */
interface Names {
  /** As a caller or an event names it. */
  chats: readonly string[]
  /** As WhatsApp names it. */
  addresses: readonly string[]
}

export class StoredConversations implements Conversations {
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  async listLines(instanceId: InstanceId, page: PageRequest, filter: LineFilter = {}): Promise<Page<Line>> {
    const { chat, status, direction, since = 0 } = filter
    const slice: Slice = { below: idBefore(page, 'msg'), from: firstMessageId(since) }
    const names = chat === undefined ? null : await this.#namesOf(instanceId, chat)
    const limit = page.limit + 1
    const lines: Line[] = []
    if (direction !== 'in' && status !== 'received')
      lines.push(...(await this.#listSent(instanceId, slice, limit, names, status)))
    if (direction !== 'out' && (status === undefined || status === 'received'))
      lines.push(...(await this.#listReceived(instanceId, slice, limit, names)))
    lines.sort((one, other) => (idOf(one) < idOf(other) ? 1 : -1))
    return toPage(lines, page.limit, idOf, line => line)
  }

  async listChats(instanceId: InstanceId, page: PageRequest, wanted?: string): Promise<Page<Chat>> {
    const { reader, statements } = this.#core
    const after = nameAfter(page)
    let query = statements.db
      .selectFrom('contacts')
      .select(['number', 'last_at', 'lid', 'username', 'name'])
      .where('instance_id', '=', instanceId)
      .where('last_at', 'is not', null)
      // Its number became known later, and has a row of its own.
      .where(
        sql<boolean>`not exists (select 1 from contacts as c
          where c.instance_id = contacts.instance_id and c.lid = contacts.number)`,
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

  async #listSent(
    instanceId: InstanceId,
    slice: Slice,
    limit: number,
    names: Names | null,
    status: Exclude<LineFilter['status'], 'received'>,
  ): Promise<Line[]> {
    const { reader, statements } = this.#core
    const ids = ({ below, from }: Slice) =>
      statements.db
        .selectFrom(messageIds(sql.val(instanceId), sql`id < ${below} and id >= ${from}`, status).as('ids'))
        .select('ids.id')
        .orderBy('ids.id', 'desc')
    const find = (part: Slice, count: number, among: number) => {
      let query = statements.db
        .selectFrom('messages')
        .select(SHOWN)
        .where('instance_id', '=', instanceId)
        .where('id', 'in', ids(part).limit(among))
        .orderBy('id', 'desc')
        .limit(count)
      if (status !== undefined) query = query.where('state', '=', sql.lit(status))
      if (names !== null)
        query = query.where(({ or, eb }) =>
          or([eb('recipient', 'in', names.chats), eb('address', 'in', [...names.addresses, ''])]),
        )
      return reader.query(query)
    }
    const edge = async (part: Slice, distance: number) =>
      (await reader.query(ids(part).offset(distance).limit(1)))[0]?.id ?? null
    const isWhole = names === null && status === undefined
    const rows = isWhole ? await find(slice, limit, limit) : await search(slice, limit, edge, find)
    return rows.map(row => ({ direction: 'out', message: toMessage(row) }))
  }

  async #listReceived(instanceId: InstanceId, slice: Slice, limit: number, names: Names | null): Promise<Line[]> {
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
        .where('incoming_messages.id', 'in', ids(part).limit(among))
        .orderBy('incoming_messages.id', 'desc')
        .limit(count)
      if (names !== null) query = query.where('incoming_messages.chat', 'in', names.chats)
      return reader.query(query)
    }
    const edge = async (part: Slice, distance: number) =>
      (await reader.query(ids(part).offset(distance).limit(1)))[0]?.id ?? null
    const rows = names === null ? await find(slice, limit, limit) : await search(slice, limit, edge, find, FEW)
    return rows.map(row => ({ direction: 'in', message: toIncoming(row) }))
  }

  /** The other names of a person are known from the messages received. */
  async #namesOf(instanceId: InstanceId, chat: string): Promise<Names> {
    const kind = parseRecipient(chat)?.kind
    if (kind !== 'number' && kind !== 'lid') return { chats: [chat], addresses: [] }
    const [row] = await this.#core.reader.query(
      this.#core.statements.db
        .selectFrom('contacts')
        .select(['number', 'lid'])
        .where('instance_id', '=', instanceId)
        .where(kind === 'number' ? 'number' : 'lid', '=', chat)
        .limit(1),
    )
    const chats = new Set([chat, ...(row ? [row.number] : []), ...(row?.lid ? [row.lid] : [])])
    const addresses = Array.from(chats, name => (name.includes('@') ? name : `${name}@s.whatsapp.net`))
    return { chats: [...chats], addresses }
  }
}

function idOf(line: Line): string {
  return line.direction === 'in' ? line.message.messageId : line.message.id
}

/** Names are compared as JSON strings, without the quotes around them. */
function matches(wanted: string, fold: (text: RawBuilder<string>) => RawBuilder<string>): RawBuilder<boolean> {
  const { words, number } = searchPatterns(wanted)
  const isIn = (column: string) => sql`${fold(sql`coalesce(${sql.ref(column)}, '')`)} like ${words} escape '\\'`
  return sql<boolean>`(number like ${number} escape '\\' or ${isIn('name')} or ${isIn('username')})`
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
