import { sql } from 'kysely'
import type { EventKind } from '../../domain/events/event.ts'
import { type FeedPlace, markOf, placeOf } from '../../domain/events/feed-place.ts'
import type { EventId, InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import type { FeedPage, FeedQuery } from './events.ts'

/** A page of one kind covers at most this many events, so that a search for a rare kind does not block the process. */
const WINDOW = 1_000
/** The most that an answer adds to the body of an event: its ID and its cursor. */
const FRAME_BYTES = 128

/**
 * Reads an instance's events in the order of their recording. Returns them only after they are on disk, so that a
 * cursor stays valid after a power failure.
 */
export class EventFeed {
  readonly #core: Core
  readonly #queries

  constructor(core: Core) {
    this.#core = core
    this.#queries = prepare(core)
  }

  async read(instanceId: InstanceId, query: FeedQuery): Promise<FeedPage | null> {
    const page = await this.#read(instanceId, query)
    await this.#core.reader.untilSynced()
    return page
  }

  async #read(instanceId: InstanceId, query: FeedQuery): Promise<FeedPage | null> {
    const { reader } = this.#core
    for (;;) {
      const from = query.after ?? { seq: (await this.#findEnds(instanceId)).erased, mark: null }
      const chosen = await this.#choose(instanceId, from.seq, query)
      const { kind } = query
      const part = { instanceId, from: from.seq, to: chosen?.seq ?? from.seq }
      const events =
        kind === undefined
          ? await reader.run(this.#queries.find, part)
          : await reader.run(this.#queries.findKind, { ...part, kind })
      // Read last: if an event was erased before it was read, `erased` is above `from` by now.
      const ends = await this.#findEnds(instanceId, from.seq)
      if (isOfThisFeed(instanceId, from, ends)) {
        const to = chosen ?? { seq: from.seq, mark: markAt(instanceId, from, ends) }
        return { events, to, isLast: to.seq >= ends.last }
      }
      if (query.after !== undefined) return null
    }
  }

  async findLast(instanceId: InstanceId): Promise<FeedPlace> {
    const { erased, last } = await this.#findEnds(instanceId)
    const seq = Math.max(erased, last)
    const { at } = await this.#findEnds(instanceId, seq)
    await this.#core.reader.untilSynced()
    return placeOf(seq, at ?? instanceId)
  }

  /**
   * Chooses the end of the page by the lengths of the bodies, before any body is read.
   * @returns the place of the last event that the page covers; null if there is none after `from`
   */
  async #choose(instanceId: InstanceId, from: number, { kind, limit, maxBytes }: FeedQuery): Promise<FeedPlace | null> {
    const window = kind === undefined ? limit : WINDOW
    const examined = await this.#core.reader.run(this.#queries.examine, { instanceId, from, window })
    let to: FeedPlace | null = null
    let count = 0
    let bytes = 0
    for (const event of examined) {
      if (kind === undefined || event.kind === kind) {
        if (count === limit || (count > 0 && bytes + event.bytes + FRAME_BYTES > maxBytes)) break
        count += 1
        bytes += event.bytes + FRAME_BYTES
      }
      to = placeOf(event.seq, event.id)
    }
    return to
  }

  async #findEnds(instanceId: InstanceId, seq = 0): Promise<Ends> {
    const [row] = await this.#core.reader.run(this.#queries.findEnds, { instanceId, seq })
    return { erased: row?.erased ?? 0, last: row?.last ?? 0, at: row?.at ?? null }
  }
}

interface Ends {
  /** The highest number among the erased events. */
  erased: number
  /** The number of the last event. */
  last: number
  /** The event with the requested number; null if there is none. */
  at: EventId | null
}

/** Whether the place belongs to this feed, and no event after it was erased. */
function isOfThisFeed(instanceId: InstanceId, { seq, mark }: FeedPlace, { erased, last, at }: Ends): boolean {
  if (seq < erased || seq > Math.max(last, erased)) return false
  if (mark === null) return true
  if (at !== null) return mark === markOf(at)
  // The mark of an erased event is unknown. Every higher number has an event, so a place without an event is from
  // another feed.
  return seq === 0 ? mark === markOf(instanceId) : seq === erased
}

/** The mark of a place of this feed. If no event has its number, the place keeps its mark. */
function markAt(instanceId: InstanceId, { seq, mark }: FeedPlace, { erased, at }: Ends): string | null {
  if (at !== null) return markOf(at)
  return mark ?? (seq === erased ? markOf(instanceId) : null)
}

function prepare({ statements }: Core) {
  const { db } = statements
  const covered = (p: { instanceId: InstanceId; from: number; to: number }) =>
    db
      .selectFrom('events')
      .select(['id', sql<number>`seq`.as('seq'), 'kind', 'body'])
      .where('instance_id', '=', p.instanceId)
      .where('seq', '>', p.from)
      .where('seq', '<=', p.to)
      .orderBy('seq')
  return {
    examine: statements.one((p: { instanceId: InstanceId; from: number; window: number }) =>
      db
        .selectFrom('events')
        .select(['id', sql<number>`seq`.as('seq'), 'kind', sql<number>`octet_length(body)`.as('bytes')])
        .where('instance_id', '=', p.instanceId)
        .where('seq', '>', p.from)
        .orderBy('seq')
        .limit(p.window),
    ),
    find: statements.one(covered),
    findKind: statements.one((p: Parameters<typeof covered>[0] & { kind: EventKind }) =>
      covered(p).where('kind', '=', p.kind),
    ),
    findEnds: statements.one((p: { instanceId: InstanceId; seq: number }) =>
      db.selectNoFrom(eb => [
        eb
          .selectFrom('events')
          .select(sql<number | null>`max(seq)`.as('last'))
          .where('instance_id', '=', p.instanceId)
          .as('last'),
        eb.selectFrom('event_feeds').select('erased_to').where('instance_id', '=', p.instanceId).as('erased'),
        eb.selectFrom('events').select('id').where('instance_id', '=', p.instanceId).where('seq', '=', p.seq).as('at'),
      ]),
    ),
  }
}
