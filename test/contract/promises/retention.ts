import { afterEach, describe, expect, test, vi } from 'vitest'
import { DEFAULT_ENDPOINT } from '../../../src/domain/events/endpoint.ts'
import { newCommandId, newEndpointId, newMessageId } from '../../../src/domain/ids.ts'
import type { Lease } from '../../../src/store/leases/leases.ts'
import type { NewMessage } from '../../../src/store/messages/messages.ts'
import { OldRowsWalk } from '../../../src/store/retention/old-rows.ts'
import type { Store } from '../../../src/store/store.ts'
import {
  accept,
  acceptPrepared,
  attempt,
  createConnected,
  createOwned,
  deliverAll,
  idempotency,
  incoming,
  listReady,
  newMessage,
  PREPARED,
  URL,
} from '../fixture.ts'
import type { CreateHarness, StoreHarness } from '../harness.ts'

/** How many messages of an instance, and how many instances, retention handles at a time. */
const STEP = 50
const INSTANCES_STEP = 50
/** Messages whose events wait for an endpoint. */
const HELD = 1_200

export function retentionContract(createHarness: CreateHarness): void {
  describe('retention', () => {
    let harness: StoreHarness
    let store: Store

    async function open(): Promise<void> {
      harness = await createHarness()
      store = await harness.open()
    }

    afterEach(async () => {
      vi.restoreAllMocks()
      await harness.dispose()
    })

    async function eraseBefore(before: number): Promise<number> {
      let total = 0
      for (;;) {
        const rows = await store.retention.step(before, Date.now())
        if (rows === 0) return total
        total += rows
      }
    }

    async function count(table: string): Promise<number> {
      return Number((await harness.execute(`select count(*) as count from ${table}`))[0]!['count'])
    }

    async function acceptFailed(lease: Lease, message: NewMessage): Promise<void> {
      expect(await store.messages.accept(message, 1_000)).toMatchObject({ kind: 'accepted' })
      await store.messages.recordFailure(lease, message, { code: 'expired', message: 'Too late.' }, 1_000)
    }

    /** Counts the queries that examine old rows. */
    function watchReads() {
      const examine = vi.spyOn(OldRowsWalk.prototype, 'examine')
      return { reads: () => examine.mock.calls.length }
    }

    function failFor(instanceId: string): void {
      const examine = OldRowsWalk.prototype.examine
      vi.spyOn(OldRowsWalk.prototype, 'examine').mockImplementation(async function (this: OldRowsWalk, ...call) {
        const found = await examine.apply(this, call)
        if (found.instanceId === instanceId) throw new Error('timeout')
        return found
      })
    }

    test('erases old messages with their events, deliveries and attempts, and keeps recent ones', async () => {
      await open()
      const lease = await createConnected(store)
      const { instanceId } = lease
      const old = newMessage(instanceId, { id: newMessageId(1_000) })
      const young = newMessage(instanceId, { id: newMessageId(2_000) })
      await store.messages.accept(old, 1_000)
      await store.messages.accept(young, 2_000)
      for (const { id } of [old, young]) await store.messages.recordPrepared(lease, id, PREPARED)
      await store.messages.recordProgress(lease, old.whatsappId, 'read', 1_000)
      await store.messages.recordProgress(lease, young.whatsappId, 'sent', 2_000)
      await store.events.storeIncoming(lease, incoming(), 1_500)
      await store.events.storeIncoming(lease, incoming(), 2_500)
      await deliverAll(store, lease)
      expect(await eraseBefore(1_000)).toBe(0)
      expect(await eraseBefore(2_000)).toBe(2 + 4 + 4 + 4)
      expect(await store.messages.find(instanceId, old.id)).toBeNull()
      expect(await store.messages.find(instanceId, young.id)).not.toBeNull()
      expect((await store.events.list(instanceId, { limit: 10 })).data).toHaveLength(2)
      expect([await count('finished_deliveries'), await count('attempts')]).toEqual([2, 2])
    })

    test('counts the age of a scheduled message from its moment', async () => {
      await open()
      const lease = await createConnected(store)
      const scheduled = newMessage(lease.instanceId, { id: newMessageId(1_000), notBefore: 5_000 })
      await store.messages.accept(scheduled, 1_000)
      expect(await store.messages.releaseDue(lease, 5_000)).toBeNull()
      await store.messages.recordPrepared(lease, scheduled.id, PREPARED)
      await store.messages.recordProgress(lease, scheduled.whatsappId, 'sent', 5_000)
      await deliverAll(store, lease)
      await eraseBefore(5_000)
      expect(await store.messages.find(lease.instanceId, scheduled.id)).not.toBeNull()
      await eraseBefore(5_001)
      expect(await store.messages.find(lease.instanceId, scheduled.id)).toBeNull()
    })

    test('counts the age of a message that waited for long from its last event, and keeps its idempotency key', async () => {
      await open()
      const lease = await createConnected(store)
      const { instanceId } = lease
      const now = Date.now()
      const DAY_MS = 86_400_000
      const accepted = now - 35 * DAY_MS
      const waited = newMessage(instanceId, { id: newMessageId(accepted) })
      const notBefore = accepted + 1_000
      const scheduled = newMessage(instanceId, {
        id: newMessageId(accepted),
        notBefore,
        idempotency: idempotency('kept'),
      })
      for (const message of [waited, scheduled])
        expect(await store.messages.accept(message, accepted)).toMatchObject({ kind: 'accepted' })
      expect(await store.messages.releaseDue(lease, notBefore)).toBeNull()
      await harness.execute('update idempotency_keys set expires_at = 1')
      for (const { id, whatsappId } of [waited, scheduled]) {
        await store.messages.recordPrepared(lease, id, PREPARED)
        await store.messages.recordProgress(lease, whatsappId, 'sent', now)
      }
      await deliverAll(store, lease)
      await eraseBefore(now - 30 * DAY_MS)
      for (const { id, whatsappId } of [waited, scheduled]) {
        expect(await store.messages.find(instanceId, id)).toMatchObject({ state: 'sent' })
        await store.messages.recordProgress(lease, whatsappId, 'read', now + 1)
      }
      const kinds = (await store.events.list(instanceId, { limit: 10 })).data.map(({ kind }) => kind)
      expect(kinds.filter(kind => kind === 'message.read')).toHaveLength(2)
      expect(await count('idempotency_keys')).toBe(1)
      await deliverAll(store, lease)
      await eraseBefore(now + 2)
      expect(await count('messages')).toBe(0)
    })

    test('erases old commands and keeps young ones', async () => {
      await open()
      const lease = await createConnected(store)
      const { instanceId } = lease
      await store.events.storeIncoming(lease, incoming(), 1_000)
      const [{ id: targetId } = { id: '' }] = await harness.execute('select id from incoming_messages')
      const command = { kind: 'read', targetId: String(targetId) } as const
      const ids = []
      for (const at of [1_000, 3_000]) {
        const message = newMessage(instanceId, { id: newCommandId(at), extras: { command } })
        expect(await store.messages.accept(message, at)).toMatchObject({ kind: 'accepted' })
        await store.messages.recordFailure(lease, message, { code: 'expired', message: 'Too late.' }, at)
        ids.push(message.id)
      }
      await deliverAll(store, lease)
      await eraseBefore(2_000)
      expect(await harness.execute('select id from messages')).toEqual([{ id: ids[1] }])
    })

    test('keeps queued messages and those with a pending delivery', async () => {
      await open()
      const lease = await createConnected(store)
      const { instanceId } = lease
      await acceptPrepared(store, lease)
      const undelivered = await acceptPrepared(store, lease)
      await store.messages.recordProgress(lease, undelivered.whatsappId, 'delivered', 1)
      await store.events.storeIncoming(lease, incoming(), 1)
      const later = Date.now() + 60_000
      expect(await eraseBefore(later)).toBe(0)
      const [sent] = await listReady(store, instanceId)
      await store.deliveries.recordAttempt(lease, sent!, attempt(sent!), { kind: 'exhausted' })
      expect(await eraseBefore(later)).toBe(0)
      await deliverAll(store, lease)
      expect(await eraseBefore(later)).toBe(2 + 3 + 3 + 3)
      expect(await store.messages.listQueued(instanceId, 10)).toHaveLength(1)
    })

    test('erases old messages that follow commands whose events wait for a paused endpoint', async () => {
      await open()
      const lease = await createConnected(store, { url: null })
      const { instanceId } = lease
      const paused = { instanceId, id: newEndpointId(), url: URL, secret: 'whsec_b3RoZXI=', active: false }
      await store.endpoints.create({ ...paused, events: ['command.*'], description: null }, 1_000)
      await store.events.storeIncoming(lease, incoming(), 1_000)
      const [{ id: targetId } = { id: '' }] = await harness.execute('select id from incoming_messages')
      const command = { kind: 'read', targetId: String(targetId) } as const
      for (let number = 0; number < STEP; number += 1) {
        const held = newMessage(instanceId, { id: newCommandId(1_000 + number), extras: { command } })
        await acceptFailed(lease, held)
      }
      const free = newMessage(instanceId, { id: newMessageId(1_000) })
      await acceptFailed(lease, free)
      await eraseBefore(2_000)
      expect(await store.messages.find(instanceId, free.id)).toBeNull()
      expect(await count('messages')).toBe(STEP)
      expect(await count('incoming_messages')).toBe(0)
    })

    test('cleans an instance even if its turn comes after others whose redeliveries wait for a paused endpoint', async () => {
      await open()
      const old = (lease: Lease) => acceptFailed(lease, newMessage(lease.instanceId, { id: newMessageId(1_000) }))
      for (let number = 0; number < INSTANCES_STEP; number += 1) {
        const lease = await createConnected(store)
        const { instanceId } = lease
        await old(lease)
        await deliverAll(store, lease)
        await store.endpoints.change(instanceId, DEFAULT_ENDPOINT, { active: false })
        const [event] = (await store.events.list(instanceId, { limit: 1 })).data
        expect(await store.deliveries.redeliver(instanceId, event!.id, 1_000)).toBe('queued')
      }
      // Instances are cleaned in the order of their IDs.
      const last = await createOwned(store, { id: 'inst_zzzzzzzzzzzz' })
      await store.connections.record(last, { state: 'connected', reason: 'Connected.' }, 1_000)
      await old(last)
      await eraseBefore(2_000)
      expect(await harness.execute("select id from messages where instance_id = 'inst_zzzzzzzzzzzz'")).toEqual([])
      expect([await count('messages'), await count('deliveries')]).toEqual([INSTANCES_STEP, INSTANCES_STEP])
    })

    test('erases old events that follow thousands of held ones, and examines each once in a round', async () => {
      await open()
      const lease = await createConnected(store)
      const { instanceId } = lease
      for (let number = 0; number < 3; number += 1) await store.events.storeIncoming(lease, incoming(), 1_500)
      await deliverAll(store, lease)
      await store.endpoints.change(instanceId, DEFAULT_ENDPOINT, { active: false })
      await Promise.all(Array.from({ length: HELD }, () => store.events.storeIncoming(lease, incoming(), 1_000)))
      const { reads } = watchReads()
      expect(await eraseBefore(2_000)).toBe(3 * 4)
      expect([await count('incoming_messages'), await count('deliveries')]).toEqual([HELD, HELD])
      // Two rounds, each with the held messages and their events, 500 at a time.
      expect(reads()).toBeLessThan(4 * (HELD / 500) + 20)
    })

    test('a failure of one instance stops neither the others nor the expired rows', async () => {
      await open()
      const leases = [await createConnected(store, { url: null }), await createConnected(store, { url: null })]
      for (const lease of leases) await store.events.storeIncoming(lease, incoming(), 1_000)
      const [first, second] = leases.map(({ instanceId }) => instanceId).toSorted()
      await store.numbers.record(leases[0]!, '551', null, 0)
      failFor(first!)
      await expect(store.retention.step(2_000, Date.now())).rejects.toThrow('timeout')
      expect(await harness.execute('select instance_id from incoming_messages')).toEqual([{ instance_id: first }])
      expect(second).not.toBe(first)
      expect(await count('numbers')).toBe(0)
      vi.restoreAllMocks()
      expect(await eraseBefore(2_000)).toBe(2)
    })

    test('erases idempotency keys a day after they expired, and expired numbers, and no others', async () => {
      await open()
      const lease = await createConnected(store)
      const { instanceId } = lease
      await store.numbers.record(lease, '551', null, 0)
      await store.numbers.record(lease, '552', null, Date.now())
      await accept(store, instanceId, { idempotency: idempotency('old') })
      const scheduled = newMessage(instanceId, { notBefore: 5_000, idempotency: idempotency('scheduled') })
      await store.messages.accept(scheduled, 1_000)
      await harness.execute('update idempotency_keys set expires_at = 1')
      // It would be valid again if the clock were set back by an hour.
      await accept(store, instanceId, { idempotency: idempotency('expired') })
      const anHourAgo = Date.now() - 3_600_000
      await harness.execute(`update idempotency_keys set expires_at = ${anHourAgo} where key = 'expired'`)
      await accept(store, instanceId, { idempotency: idempotency('new') })
      expect(await eraseBefore(0)).toBe(2)
      const keys = await harness.execute('select key from idempotency_keys')
      expect(keys.map(({ key }) => key).toSorted()).toEqual(['expired', 'new', 'scheduled'])
      expect(await count('numbers')).toBe(1)
    })

    test('erases no idempotency keys if the clock jumps during a round', async () => {
      await open()
      const { instanceId } = await createConnected(store)
      await accept(store, instanceId, { idempotency: idempotency('key') })
      await harness.execute('update idempotency_keys set expires_at = 1')
      // By the time at which the round began, the key has not expired.
      await store.retention.step(0, 0)
      expect(await count('idempotency_keys')).toBe(1)
    })

    test('works in small steps until nothing is left to erase', async () => {
      await open()
      const leases = await Promise.all([1, 2, 3].map(() => createConnected(store)))
      for (const lease of leases) {
        await Promise.all(Array.from({ length: 150 }, () => store.events.storeIncoming(lease, incoming(), 1)))
        const due = await store.deliveries.listFirst(lease.instanceId, 0, 200)
        const record = (delivery: (typeof due)[number]) =>
          store.deliveries.recordAttempt(lease, delivery, attempt(delivery), { kind: 'delivered' })
        await Promise.all(due.map(record))
      }
      const first = await store.retention.step(2, Date.now())
      expect(first).toBeGreaterThan(0)
      expect(first).toBeLessThanOrEqual(1_000)
      expect(first + (await eraseBefore(2))).toBe(3 * 150 * 4)
      expect(await count('events')).toBe(0)
    })
  })
}
