import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { DEFAULT_ENDPOINT } from '../../../src/domain/events/endpoint.ts'
import { type FeedPlace, formatCursor, parseCursor, placeOf } from '../../../src/domain/events/feed-place.ts'
import { type InstanceId, newEventId, newMessageId } from '../../../src/domain/ids.ts'
import type { FeedQuery } from '../../../src/store/events/events.ts'
import type { Store } from '../../../src/store/store.ts'
import {
  acceptPrepared,
  createConnected,
  deliverAll,
  incoming,
  newMessage,
  PREPARED,
  take,
  withStore,
} from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'

const DAY_MS = 86_400_000
const LARGE = 1 << 20

/** A cursor of an earlier version, which was a number. */
const at = (seq: number): FeedPlace => ({ seq, mark: null })

export function feedContract(createHarness: CreateHarness): void {
  describe('the feed of events', () => {
    const context = withStore(createHarness)

    async function readAll(store: Store, instanceId: string, query: Partial<FeedQuery> = {}) {
      const events = []
      for (let after = query.after; ; ) {
        const page = await store.events.readFeed(instanceId, { limit: 7, maxBytes: LARGE, ...query, after })
        if (page === null) throw new Error('The cursor has expired.')
        events.push(...page.events)
        after = page.to
        if (page.isLast) return events
      }
    }

    const bySeq = (one: { seq: number }, other: { seq: number }) => one.seq - other.seq

    test('shows the events of an instance in the order of their recording', async () => {
      const { store } = context
      const [lease, other] = [await createConnected(store), await createConnected(store)]
      const { instanceId } = lease
      const message = await acceptPrepared(store, lease)
      await Promise.all([
        store.events.storeIncoming(lease, incoming({ text: 'first' }), 5_000),
        store.events.storeIncoming(other, incoming(), 5_000),
        store.messages.recordProgress(lease, message.whatsappId, 'read', 4_000),
        store.events.storeIncoming(lease, incoming({ text: 'last' }), 3_000),
      ])
      const events = await readAll(store, instanceId)
      expect(events.map(({ kind }) => kind)).toEqual([
        'message.received',
        'message.sent',
        'message.delivered',
        'message.read',
        'message.received',
      ])
      expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5])
      const listed = (await store.events.list(instanceId, { limit: 10 })).data.map(({ id }) => id)
      expect(events.map(({ id }) => id).toSorted()).toEqual(listed.toSorted())
      expect(JSON.parse(events[0]!.body)).toMatchObject({ event: 'message.received', instanceId })
      expect(await store.events.findFeedEnd(instanceId)).toEqual(placeOf(5, events[4]!.id))
      expect(await readAll(store, other.instanceId)).toHaveLength(1)
    })

    test('a reader that continues with its cursor sees each event once, whatever the size of its pages', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const recorded: Promise<unknown>[] = []
      for (let count = 0; count < 60; count += 1) {
        recorded.push(store.events.storeIncoming(lease, incoming({ id: `WA${count}` }), count))
      }
      await Promise.all(recorded)
      for (const limit of [1, 7, 60, 61, 200]) {
        const events = await readAll(store, instanceId, { limit })
        expect(events.map(({ body }) => JSON.parse(body).data.id)).toEqual(recorded.map((_, index) => `WA${index}`))
      }
      const [, second] = await readAll(store, instanceId)
      expect(await readAll(store, instanceId, { after: placeOf(second!.seq, second!.id) })).toHaveLength(58)
    })

    test('an event never appears below one that was read, while others are being recorded', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const seen: number[] = []
      let isDone = false
      const reader = (async () => {
        for (let after = at(0); ; ) {
          const wasDone = isDone
          const page = (await store.events.readFeed(instanceId, { after, limit: 5, maxBytes: LARGE }))!
          seen.push(...page.events.map(({ seq }) => seq))
          after = page.to
          if (wasDone && page.isLast) return
          await setImmediate()
        }
      })()
      const writes = Array.from({ length: 300 }, async (_, index) => {
        const message = await acceptPrepared(store, lease)
        await store.messages.recordProgress(lease, message.whatsappId, index % 2 === 0 ? 'delivered' : 'sent', index)
      })
      await Promise.all(writes)
      isDone = true
      await reader
      expect(seen).toEqual(seen.toSorted((a, b) => a - b))
      expect(new Set(seen).size).toBe(450)
    })

    test('a duplicate changes nothing in the feed', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const message = incoming({ id: 'again' })
      const both = [message, message, incoming({ id: 'other' })]
      await Promise.all(both.map(one => store.events.storeIncoming(lease, one, 1)))
      await store.events.storeIncoming(lease, message, 2)
      await store.events.storeIncoming(lease, incoming({ id: 'last' }), 3)
      const events = await readAll(store, lease.instanceId)
      expect(events.map(({ body }) => JSON.parse(body).data.id)).toEqual(['again', 'other', 'last'])
      expect(events).toEqual(events.toSorted(bySeq))
    })

    test('the numbers continue after a takeover, and the former owner adds nothing', async () => {
      const { harness, store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      await store.events.storeIncoming(lease, incoming({ id: 'before' }), 10 * DAY_MS)
      await harness.execute(`update leases set lease_until = 1 where instance_id = '${instanceId}'`)
      const next = await take(store, instanceId, 'node-2')
      await expect(store.events.storeIncoming(lease, incoming(), 1)).rejects.toThrow()
      // The clock of the new owner is behind.
      await store.events.storeIncoming(next, incoming({ id: 'after' }), 1)
      const events = await readAll(store, instanceId)
      expect(events.map(({ seq, body }) => [seq, JSON.parse(body).data.id])).toEqual([
        [1, 'before'],
        [2, 'after'],
      ])
    })

    test('a page is limited by the size of its bodies, and has at least one event', async () => {
      const { store } = context
      const lease = await createConnected(store)
      for (const length of [60_000, 10, 60_000, 60_000]) {
        await store.events.storeIncoming(lease, incoming({ text: 'x'.repeat(length) }), 1)
      }
      const sizes = async (maxBytes: number) => {
        const pages: number[] = []
        for (let after: FeedPlace | undefined; ; ) {
          const page = (await store.events.readFeed(lease.instanceId, { after, limit: 10, maxBytes }))!
          pages.push(page.events.length)
          after = page.to
          if (page.isLast) return pages
        }
      }
      expect(await sizes(130_000)).toEqual([3, 1])
      expect(await sizes(61_500)).toEqual([2, 1, 1])
      expect(await sizes(1)).toEqual([1, 1, 1, 1])
    })

    test('shows one kind on request, and its cursor moves past the others', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const message = await acceptPrepared(store, lease)
      for (let count = 0; count < 5; count += 1) await store.events.storeIncoming(lease, incoming(), count)
      await store.messages.recordProgress(lease, message.whatsappId, 'sent', 6)
      for (let count = 0; count < 5; count += 1) await store.events.storeIncoming(lease, incoming(), count)
      const query = { limit: 3, maxBytes: LARGE, kind: 'message.sent' } as const
      const page = (await store.events.readFeed(instanceId, query))!
      expect(page.events.map(({ seq }) => seq)).toEqual([6])
      expect(page).toMatchObject({ to: { seq: 11 }, isLast: true })
      const received = await readAll(store, instanceId, { kind: 'message.received', limit: 3 })
      expect(received.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 7, 8, 9, 10, 11])
    })

    test('a cursor that precedes an erased event has expired, and a reader without a cursor starts after it', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      for (const at of [1_000, 2_000, 3_000, DAY_MS]) await store.events.storeIncoming(lease, incoming(), at)
      await deliverAll(store, lease)
      const read = (after?: number) =>
        store.events.readFeed(instanceId, {
          after: after === undefined ? after : at(after),
          limit: 10,
          maxBytes: LARGE,
        })
      expect((await read(0))?.events).toHaveLength(4)
      while ((await store.retention.step(2_500, Date.now())) > 0);
      expect(await read(0)).toBeNull()
      expect(await read(1)).toBeNull()
      expect((await read(2))?.events.map(({ seq }) => seq)).toEqual([3, 4])
      expect((await read())?.events.map(({ seq }) => seq)).toEqual([3, 4])
      while ((await store.retention.step(2 * DAY_MS, Date.now())) > 0);
      expect(await read(3)).toBeNull()
      expect(await read(4)).toEqual({ events: [], to: placeOf(4, instanceId), isLast: true })
      expect(await read()).toEqual({ events: [], to: placeOf(4, instanceId), isLast: true })
      await store.events.storeIncoming(lease, incoming(), 3 * DAY_MS)
      expect((await read(4))?.events.map(({ seq }) => seq)).toEqual([5])
    })

    test('the feed begins after the last erased event, even if an earlier event is kept', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      // The second event was recorded while the clock was behind.
      for (const at of [DAY_MS, 1_000, DAY_MS]) await store.events.storeIncoming(lease, incoming(), at)
      await deliverAll(store, lease)
      while ((await store.retention.step(2_500, Date.now())) > 0);
      expect((await readAll(store, instanceId)).map(({ seq }) => seq)).toEqual([3])
      expect(await store.events.readFeed(instanceId, { after: at(1), limit: 10, maxBytes: LARGE })).toBeNull()
    })

    test('a cursor that no event has had yet is refused', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const read = (after: number) =>
        store.events.readFeed(lease.instanceId, { after: at(after), limit: 10, maxBytes: LARGE })
      expect(await read(0)).toEqual({ events: [], to: placeOf(0, lease.instanceId), isLast: true })
      expect(await read(1)).toBeNull()
      await store.events.storeIncoming(lease, incoming(), 1)
      expect(await read(1)).toEqual({ events: [], to: await store.events.findFeedEnd(lease.instanceId), isLast: true })
      expect(await read(2)).toBeNull()
    })

    const readAfter = (store: Store, instanceId: InstanceId, after: FeedPlace | undefined) =>
      store.events.readFeed(instanceId, { after, limit: 10, maxBytes: LARGE })

    test('a cursor of another feed has expired, and so has one from before a restore', async () => {
      const { harness, store } = context
      const [lease, other] = [await createConnected(store), await createConnected(store)]
      const { instanceId } = lease
      const start = await store.events.findFeedEnd(instanceId)
      for (const at of [1, 2, 3]) await store.events.storeIncoming(lease, incoming(), at)
      for (const at of [1, 2, 3, 4]) await store.events.storeIncoming(other, incoming(), at)
      const places = (await readAll(store, instanceId)).map(({ seq, id }) => placeOf(seq, id))
      for (const place of [start, ...places]) {
        expect(await readAfter(store, instanceId, place)).not.toBeNull()
        expect(await readAfter(store, other.instanceId, place)).toBeNull()
      }
      // A restore undoes the third event, and another one gets its number.
      await harness.execute(`update events set id = '${newEventId(4)}' where instance_id = '${instanceId}' and seq = 3`)
      expect(await readAfter(store, instanceId, places[2])).toBeNull()
      expect((await readAfter(store, instanceId, places[1]))?.events).toHaveLength(1)
    })

    test('the cursor of the last event stays valid when the event is erased, even when it is written as text', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      for (const at of [1_000, 2_000]) await store.events.storeIncoming(lease, incoming(), at)
      await deliverAll(store, lease)
      const [first, second] = (await readAll(store, instanceId)).map(({ seq, id }) => placeOf(seq, id))
      while ((await store.retention.step(DAY_MS, Date.now())) > 0);
      expect(await readAfter(store, instanceId, first)).toBeNull()
      expect(await readAfter(store, instanceId, second)).toEqual({ events: [], to: second, isLast: true })
      const start = (await readAfter(store, instanceId, undefined))!.to
      expect(await store.events.findFeedEnd(instanceId)).toEqual(start)
      await store.events.storeIncoming(lease, incoming(), 2 * DAY_MS)
      for (const place of [second!, start]) {
        const page = await readAfter(store, instanceId, parseCursor(formatCursor(place))!)
        expect(page?.events.map(({ seq }) => seq)).toEqual([3])
      }
    })

    test('retention keeps an event that is younger than its erased message, so the feed loses no recent event', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      await store.endpoints.change(instanceId, DEFAULT_ENDPOINT, { events: ['*'] })
      const old = incoming({ id: 'A' })
      await store.events.storeIncoming(lease, old, 1_000)
      const { from, lid } = old
      const edit = { id: 'E', change: 'edit', target: 'A', ofOwn: false, text: 'new', from, chat: from, lid } as const
      await store.events.recordChange(lease, { ...edit, username: null, sentAt: 1_000 }, 5 * DAY_MS)
      await deliverAll(store, lease)
      while ((await store.retention.step(2 * DAY_MS, Date.now())) > 0);
      const page = await store.events.readFeed(instanceId, { after: at(1), limit: 10, maxBytes: LARGE })
      expect(page?.events.map(({ kind }) => kind)).toEqual(['message.edited'])
      const { data } = await store.events.list(instanceId, { limit: 10 })
      expect(data).toMatchObject([{ kind: 'message.edited', delivery: { state: 'delivered' } }])
      while ((await store.retention.step(6 * DAY_MS, Date.now())) > 0);
      expect((await store.events.list(instanceId, { limit: 10 })).data).toEqual([])
      expect(await store.events.readFeed(instanceId, { after: at(1), limit: 10, maxBytes: LARGE })).toBeNull()
    })

    test('retention keeps the events of a message whose last event is recent', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const old = newMessage(instanceId, { id: newMessageId(1_000) })
      await store.messages.accept(old, 1_000)
      await store.messages.recordPrepared(lease, old.id, PREPARED)
      await store.messages.recordProgress(lease, old.whatsappId, 'delivered', 1_000)
      await store.messages.recordProgress(lease, old.whatsappId, 'read', 5 * DAY_MS)
      await deliverAll(store, lease)
      while ((await store.retention.step(2 * DAY_MS, Date.now())) > 0);
      expect(await readAll(store, instanceId, { after: at(0) })).toHaveLength(3)
      while ((await store.retention.step(6 * DAY_MS, Date.now())) > 0);
      expect(await readAll(store, instanceId)).toEqual([])
    })

    test('an erased instance leaves no row of its feed', async () => {
      const { harness, store } = context
      const lease = await createConnected(store, { url: null })
      await store.events.storeIncoming(lease, incoming(), 1_000)
      while ((await store.retention.step(2_000, Date.now())) > 0);
      expect(await harness.execute(`select * from event_feeds where instance_id = '${lease.instanceId}'`)).toHaveLength(
        1,
      )
      await store.instances.delete(lease.instanceId, 1)
      const next = await take(store, lease.instanceId)
      expect(await store.instances.erase(next)).toBe(true)
      expect(await harness.execute(`select * from event_feeds where instance_id = '${lease.instanceId}'`)).toEqual([])
    })
  })
}
