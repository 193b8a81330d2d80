import { setImmediate } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import type { MessageExtras } from '../../domain/conversation.ts'
import type { InstanceId } from '../../domain/ids.ts'
import { otherSpelling } from '../../domain/recipients/recipient.ts'
import { type Names, namesOf } from '../conversations/chat-lines.ts'
import { findNames } from '../conversations/chat-names.ts'
import type { Core } from '../engine/core.ts'
import { IS_QUEUED, IS_SETTLED } from '../engine/schema/messages.ts'
import { chatOf } from '../numbers/contacts.ts'

/** Messages found at a time. */
const STEP = 50
/** Messages that one query reads to find those in groups that somebody wrote or that concern what somebody wrote. */
const WINDOW = 1_000
/** Above the IDs of all messages and commands. */
const ABOVE_ALL = 'msh'

/** Besides messages and events, the tables whose column `number` names the contact. */
export const NAMING_TABLES = ['contacts', 'numbers', 'number_orders'] as const

/** A message in either direction. */
export interface Found {
  id: string
  direction: 'out' | 'in'
  /**
   * A message of the instance to a group that quotes the person, or a read mark on a message of the person in a group. The
   * person is erased from it, and its row stays: unread messages are counted from the last mark.
   */
  stays?: 'answer' | 'mark'
}

interface Part<K = string> {
  found: Found[]
  /** The next part is below this ID, or above this `seq`. Null: this is the last one. */
  next: K | null
}

interface SentRow {
  id: string
  extras: string | null
}

/** Finds the rows of one contact, for its export and its erasure. */
export class ContactRows {
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  /** All names of the contact. Another spelling of the number counts only if a message or a look-up shows it. */
  async findNames(instanceId: InstanceId, contact: string): Promise<Names> {
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

  /**
   * Finds all messages of the contact's chat in both directions, the newest first, then those that the person wrote in
   * groups, and then the commands on these and the answers that quote them, first the queued ones. The caller may erase one
   * part before it asks for the next.
   * @param top only messages below this ID, and all commands
   */
  async *walk(instanceId: InstanceId, names: Names, top = ABOVE_ALL): AsyncGenerator<readonly Found[], void> {
    for (let below = top; ; ) {
      const messages = await this.#read(rowsOfChat(instanceId, names, below))
      if (messages.length > 0) yield messages
      if (messages.length < STEP) break
      below = messages.at(-1)!.id
      await setImmediate()
    }
    yield* inSteps(top, below => this.#findInGroups(instanceId, names, below))
    // Queued rows come first, because they may settle at any time. A scheduled message that is released moves up from below 0.
    const queued = inSteps(Number.MIN_SAFE_INTEGER, after => this.#findQueued(instanceId, names, after, top))
    const settled = inSteps(top, below => this.#findSettled(instanceId, names, below))
    const seen = new Set<string>()
    for (const steps of [queued, settled])
      for await (const step of steps) {
        const found = step.filter(({ id }) => !seen.has(id))
        for (const { id } of found) seen.add(id)
        if (found.length > 0) yield found
      }
  }

  /** Finds the person's messages in groups, among the next messages below an ID. There is no index for them. */
  async #findInGroups(instanceId: InstanceId, { chats }: Names, below: string): Promise<Part> {
    const sender = sql`case addressing when 'lid' then sender || '@lid' when 'other' then sender || '@bot' else sender end`
    const rows = await this.#read(sql<{
      id: string
      isTheirs: number
    }>`select id, case when chat not in (${sql.join(chats)}) and (lid in (${sql.join(chats)})
        or (${sender} in (${sql.join(chats)}) and written is null)) then 1 else 0 end as "isTheirs"
      from incoming_messages where instance_id = ${instanceId} and id < ${below} order by id desc limit ${sql.lit(WINDOW)}`)
    const found = rows.filter(({ isTheirs }) => isTheirs === 1).map(({ id }): Found => ({ id, direction: 'in' }))
    return { found, next: rows.length < WINDOW ? null : rows.at(-1)!.id }
  }

  /** Finds the settled commands on the person's messages in groups and the replies to them, as `#findInGroups` does. */
  async #findSettled(instanceId: InstanceId, { addresses }: Names, below: string): Promise<Part> {
    const rows = await this.#read(sql<SentRow>`select id, case when ${mayConcern(addresses)} then extras end as extras
      from messages where instance_id = ${instanceId} and ${IS_SETTLED} and id < ${below}
      order by id desc limit ${sql.lit(WINDOW)}`)
    return { found: concerning(rows, addresses), next: rows.length < WINDOW ? null : rows.at(-1)!.id }
  }

  /** The same among the queued ones, in their order. */
  async #findQueued(instanceId: InstanceId, { addresses }: Names, after: number, top: string): Promise<Part<number>> {
    const rows = await this.#read(sql<SentRow & { seq: number }>`select id, seq,
      case when id < ${top} and ${mayConcern(addresses)} then extras end as extras
      from messages where instance_id = ${instanceId} and ${IS_QUEUED} and seq > ${after}
      order by seq limit ${sql.lit(WINDOW)}`)
    return { found: concerning(rows, addresses), next: rows.length < WINDOW ? null : rows.at(-1)!.seq }
  }

  #read<R>(query: RawBuilder<R>): Promise<R[]> {
    const { reader, statements } = this.#core
    return reader.query<R>({ compile: () => query.compile(statements.db) })
  }
}

/** Messages and commands of the chat below an ID, the highest first. */
export function rowsOfChat(
  instanceId: InstanceId,
  { chats, addresses }: Names,
  below: string = ABOVE_ALL,
): RawBuilder<Found> {
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
  return sql<Found>`select id, direction from (${sql.join(parts, sql` union all `)}) as parts
    order by id desc limit ${sql.lit(STEP)}`
}

async function* inSteps<K>(first: K, find: (from: K) => Promise<Part<K>>): AsyncGenerator<readonly Found[], void> {
  for (let from: K | null = first; from !== null; ) {
    const { found, next }: Part<K> = await find(from)
    for (let at = 0; at < found.length; at += STEP) yield found.slice(at, at + STEP)
    from = next
    // On SQLite, reads block the event loop, so other calls run in between.
    await setImmediate()
  }
}

/** Whether a message or command to a group may refer to a message of one of these people. */
function mayConcern(addresses: readonly string[]): RawBuilder<boolean> {
  const named = addresses.map(address => sql`extras like ${`%"author":${JSON.stringify(address)}%`}`)
  return sql<boolean>`(recipient like '%@g.us' and (${sql.join(named, sql` or `)}))`
}

function concerning(rows: readonly SentRow[], addresses: readonly string[]): Found[] {
  const isTheirs = (reference: { author: string | null } | undefined) => addresses.includes(reference?.author ?? '')
  return rows.flatMap(({ id, extras }): Found[] => {
    const { command, quote }: MessageExtras = JSON.parse(extras ?? '{}')
    if (isTheirs(command?.target)) return [{ id, direction: 'out', ...(command?.kind === 'read' && { stays: 'mark' }) }]
    return isTheirs(quote) ? [{ id, direction: 'out', stays: 'answer' }] : []
  })
}
