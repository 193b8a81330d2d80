import { sql } from 'kysely'
import type { EventKind } from '../../domain/events/event.ts'
import type { InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import type { FeedPage, FeedQuery } from './events.ts'

/** Events that a page covers at most if it shows one kind only, so that a rare kind does not block the process. */
const WINDOW = 1_000
/** What an answer adds to the body of an event, at most: its ID and its cursor. */
const FRAME_BYTES = 128

/** Reads an instance's events in the order of their recording, once they are on disk: a cursor must stay true. */
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
      const from = query.after ?? (await this.#findEnds(instanceId)).erased
      const to = await this.#choose(instanceId, from, query)
      const { kind } = query
      const part = { instanceId, from, to }
      const events =
        kind === undefined
          ? await reader.run(this.#queries.find, part)
          : await reader.run(this.#queries.findKind, { ...part, kind })
      // Read last: if an event was erased before it was read, `erased` is above `from` by now.
      const { erased, last } = await this.#findEnds(instanceId)
      if (erased <= from && from <= Math.max(last, erased)) return { events, to, isLast: to >= last }
      if (query.after !== undefined) return null
    }
  }

  async findLast(instanceId: InstanceId): Promise<number> {
    const { erased, last } = await this.#findEnds(instanceId)
    await this.#core.reader.untilSynced()
    return Math.max(erased, last)
  }

  /**
   * Chooses the end of the page by the lengths of the bodies, before any body is read.
   * @returns the number of the last event that the page covers
   */
  async #choose(instanceId: InstanceId, from: number, { kind, limit, maxBytes }: FeedQuery): Promise<number> {
    const window = kind === undefined ? limit : WINDOW
    const examined = await this.#core.reader.run(this.#queries.examine, { instanceId, from, window })
    let to = from
    let count = 0
    let bytes = 0
    for (const event of examined) {
      if (kind === undefined || event.kind === kind) {
        if (count === limit || (count > 0 && bytes + event.bytes + FRAME_BYTES > maxBytes)) break
        count += 1
        bytes += event.bytes + FRAME_BYTES
      }
      to = event.seq
    }
    return to
  }

  async #findEnds(instanceId: InstanceId): Promise<{ erased: number; last: number }> {
    const [row] = await this.#core.reader.run(this.#queries.findEnds, { instanceId })
    return { erased: row?.erased ?? 0, last: row?.last ?? 0 }
  }
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
        .select([sql<number>`seq`.as('seq'), 'kind', sql<number>`octet_length(body)`.as('bytes')])
        .where('instance_id', '=', p.instanceId)
        .where('seq', '>', p.from)
        .orderBy('seq')
        .limit(p.window),
    ),
    find: statements.one(covered),
    findKind: statements.one((p: Parameters<typeof covered>[0] & { kind: EventKind }) =>
      covered(p).where('kind', '=', p.kind),
    ),
    findEnds: statements.one((p: { instanceId: InstanceId }) =>
      db.selectNoFrom(eb => [
        eb
          .selectFrom('events')
          .select(sql<number | null>`max(seq)`.as('last'))
          .where('instance_id', '=', p.instanceId)
          .as('last'),
        eb.selectFrom('event_feeds').select('erased_to').where('instance_id', '=', p.instanceId).as('erased'),
      ]),
    ),
  }
}
