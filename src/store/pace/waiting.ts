import { type InstanceId, isCommandId, type MessageId } from '../../domain/ids.ts'
import type { Waiting } from '../../domain/message.ts'
import { namesOf, parseRecipient } from '../../domain/recipients/recipient.ts'
import { currentStateOf } from '../connections/current-state.ts'
import type { Core } from '../engine/core.ts'
import { IS_QUEUED } from '../engine/schema/messages.ts'
import { searchWindows } from '../messages/searching.ts'

/** Queued rows that are searched at once. Few, because the first message of a chat is often among the first of the queue. */
const WINDOW = 1_000
const MAX_WINDOWS = 20

type Row = Awaited<ReturnType<WaitingReader['findRows']>>[number]

/** Finds out from the database why queued messages have not been sent yet. */
export class WaitingReader {
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  async find(instanceId: InstanceId, ids: readonly MessageId[], now: number): Promise<ReadonlyMap<MessageId, Waiting>> {
    const rows = ids.length === 0 ? [] : await this.findRows(instanceId, ids)
    const firsts = await this.#findFirsts(instanceId, rows)
    const slowed = rows.filter(row => Math.max(row.restricted_until ?? 0, row.new_recipients_at ?? 0) > now)
    const contacts = await this.#findContacts(instanceId, new Set(slowed.map(({ recipient }) => recipient)))
    return new Map(
      rows.flatMap(row => {
        const isFirst = row.seq <= (firsts.get(row.recipient) ?? row.seq)
        const waiting = assess(row, isFirst, contacts, now)
        return waiting === null ? [] : [[row.id, waiting] as const]
      }),
    )
  }

  findRows(instanceId: InstanceId, ids: readonly MessageId[]) {
    const { reader, statements } = this.#core
    return reader.query(
      statements.db
        .selectFrom('messages')
        .innerJoin('connections', 'connections.instance_id', 'messages.instance_id')
        .innerJoin('leases', 'leases.instance_id', 'messages.instance_id')
        .leftJoin('paces', 'paces.instance_id', 'messages.instance_id')
        .select(['messages.id', 'messages.seq', 'messages.recipient', 'messages.address', 'messages.not_before'])
        .select(['messages.file', 'connections.restricted_until', 'paces.opens_at', 'paces.new_recipients_at'])
        .select(currentStateOf('connections', 'leases', statements.now).as('state'))
        .where('messages.instance_id', '=', instanceId)
        .where('messages.id', 'in', [...ids])
        .where(IS_QUEUED),
    )
  }

  /**
   * The number of the first queued message for each recipient, if it is among the first rows of the queue. No index finds
   * it by the recipient.
   */
  async #findFirsts(instanceId: InstanceId, rows: readonly Row[]): Promise<ReadonlyMap<string, number>> {
    const { reader, statements } = this.#core
    const sendable = rows.filter(({ seq, state }) => seq > 0 && state === 'connected')
    const firsts = new Map<string, number>()
    const missing = new Set(sendable.map(({ recipient }) => recipient))
    const last = Math.max(...sendable.map(({ seq }) => seq))
    const queued = statements.db.selectFrom('messages').where('instance_id', '=', instanceId).where(IS_QUEUED)
    let after = 0
    for (let windows = 0; missing.size > 0 && after < last && windows < MAX_WINDOWS; windows += 1) {
      // On SQLite, reads block the event loop, so other calls run in between.
      if (windows > 0) await searchWindows.take(instanceId)
      const following = queued.where('seq', '>', after).where('seq', '<=', last)
      const [end] = await reader.query(
        following
          .select('seq')
          .orderBy('seq')
          .offset(WINDOW - 1)
          .limit(1),
      )
      const upTo = end?.seq ?? last
      const found = await reader.query(
        following
          .select(eb => ['recipient', eb.fn.min('seq').as('seq')])
          .where('seq', '<=', upTo)
          .where('recipient', 'in', [...missing])
          .groupBy('recipient'),
      )
      for (const { recipient, seq } of found) {
        firsts.set(recipient, seq)
        missing.delete(recipient)
      }
      after = upTo
    }
    return firsts
  }

  /** Those of the recipients who are not strangers. */
  async #findContacts(instanceId: InstanceId, recipients: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const groups = [...recipients].filter(recipient => parseRecipient(recipient)?.kind === 'group')
    const people = [...recipients].filter(recipient => !groups.includes(recipient))
    if (people.length === 0) return new Set(groups)
    const { reader, statements } = this.#core
    const numbers = await reader.query(
      statements.db
        .selectFrom('numbers')
        .select(['number', 'address'])
        .where('instance_id', '=', instanceId)
        .where('number', 'in', people),
    )
    const addresses = new Map(numbers.map(({ number, address }) => [number, address]))
    const names = new Map(people.map(to => [to, namesOf(to, addresses.get(to))]))
    const all = [...names.values()].flat()
    const contacts = statements.db
      .selectFrom('contacts')
      .select(['number', 'lid'])
      .where('instance_id', '=', instanceId)
      .where('stranger', '=', 0)
    const [byNumber, byLid] = await Promise.all([
      reader.query(contacts.where('number', 'in', all)),
      // SQLite uses the index of LIDs only in a query that reads no other columns.
      reader.query(
        contacts.where('number', 'in', eb =>
          eb
            .selectFrom('contacts as k')
            .select('k.number')
            .where('k.instance_id', '=', instanceId)
            .where('k.lid', 'in', all),
        ),
      ),
    ])
    const known = new Set([...byNumber, ...byLid].flatMap(({ number, lid }) => [number, lid]))
    return new Set([...groups, ...people.filter(to => names.get(to)!.some(name => known.has(name)))])
  }
}

function assess(row: Row, isFirst: boolean, contacts: ReadonlySet<string>, now: number): Waiting | null {
  if (row.seq < 0) return { waitingFor: 'schedule', notBefore: row.not_before }
  if (row.state !== 'connected') return { waitingFor: 'connection', notBefore: null }
  if (!isFirst) return { waitingFor: 'order', notBefore: null }
  if (row.address !== null || isCommandId(row.id)) return null
  const restricted = row.restricted_until ?? 0
  const isStranger = !contacts.has(row.recipient)
  if (isStranger && restricted > now) return { waitingFor: 'restriction', notBefore: restricted }
  const paced = Math.max(row.opens_at ?? 0, isStranger ? (row.new_recipients_at ?? 0) : 0)
  if (paced > now) return { waitingFor: 'pace', notBefore: paced }
  return row.file === null ? null : { waitingFor: 'media', notBefore: null }
}
