import { describe, expect, test } from 'vitest'
import { newEndpointId } from '../../../src/domain/ids.ts'
import type { DueDelivery } from '../../../src/store/deliveries/deliveries.ts'
import {
  acceptPrepared,
  attempt,
  bodyOf,
  createConnected,
  incoming,
  listReady,
  URL,
  watchHints,
  withStore,
} from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'

export function eventsContract(createHarness: CreateHarness): void {
  describe('events', () => {
    const context = withStore(createHarness)

    test('an incoming message creates an event with the time of the message, and a delivery', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const hints = watchHints(store, lease.instanceId)
      const message = incoming({ id: 'WA1', text: 'Olá', name: 'Ana', sentAt: 2_000 })
      expect(await store.events.storeIncoming(lease, message, 9_000)).toBe('recorded')
      expect(hints).toEqual(['deliveries'])
      const [delivery] = await listReady(store, lease.instanceId)
      expect(bodyOf(delivery!)).toEqual({
        event: 'message.received',
        instanceId: lease.instanceId,
        timestamp: '1970-01-01T00:00:02.000Z',
        data: {
          id: 'WA1',
          from: '5511988880000',
          type: 'text',
          text: 'Olá',
          name: 'Ana',
          messageId: expect.stringMatching(/^msg_/),
          chat: '5511988880000',
          phone: '5511988880000',
          lid: null,
          username: null,
        },
      })
      expect(await store.events.find(lease.instanceId, delivery!.eventId)).toMatchObject({
        kind: 'message.received',
        timestamp: 2_000,
        createdAt: 9_000,
        messageId: expect.stringMatching(/^msg_/),
        delivery: { state: 'pending', attempts: 0, redelivery: false },
      })
    })

    test('there is one event per chat, sender and ID, even if WhatsApp delivers a message again', async () => {
      const { store } = context
      const [lease, other] = [await createConnected(store), await createConnected(store)]
      const message = incoming({ id: 'A', from: '551' })
      const record = (changes: Parameters<typeof incoming>[0], by = lease) =>
        store.events.storeIncoming(by, { ...message, ...changes }, 0)
      const together = await Promise.all([record({}), record({ text: 'changed' }), record({})])
      expect(together.toSorted()).toEqual(['duplicate', 'duplicate', 'recorded'])
      expect(await record({ sentAt: 77 })).toBe('duplicate')
      expect(await store.events.isRecorded(lease.instanceId, { ...message, text: 'other' })).toBe(true)
      expect(await store.events.isRecorded(lease.instanceId, { ...message, from: '552' })).toBe(false)
      expect(await store.events.isRecorded(other.instanceId, message)).toBe(false)
      expect(await record({ id: 'B' })).toBe('recorded')
      expect(await record({ from: '552' })).toBe('recorded')
      expect(await record({ group: '1203@g.us' })).toBe('recorded')
      expect(await record({}, other)).toBe('recorded')
      expect((await store.events.list(lease.instanceId, { limit: 10 })).data).toHaveLength(4)
    })

    test('an incoming message may contain any text', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const text = `\0 \ud800 ${'x'.repeat(60_000)}`
      const message = incoming({ id: `id with \0 ${'y'.repeat(9_000)}`, text, name: '\0' })
      expect(await store.events.storeIncoming(lease, message, 0)).toBe('recorded')
      expect(await store.events.storeIncoming(lease, message, 0)).toBe('duplicate')
      const [delivery] = await listReady(store, lease.instanceId)
      expect(bodyOf(delivery!).data['text']).toBe(text)
    })

    test('are listed newest first, and can be filtered by kind and by the state of the latest delivery', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const message = await acceptPrepared(store, lease)
      await store.messages.recordProgress(lease, message.whatsappId, 'delivered', 1)
      for (const id of ['a', 'b', 'c', 'd']) await store.events.storeIncoming(lease, incoming({ id }), 2)
      const [, a, b, c] = await listReady(store, instanceId)
      await store.deliveries.recordAttempt(lease, a!, attempt(a!), { kind: 'delivered' })
      await store.deliveries.recordAttempt(lease, b!, attempt(b!, { status: 500 }), { kind: 'exhausted' })
      await store.deliveries.recordAttempt(lease, c!, attempt(c!, { status: 500 }), {
        kind: 'retry',
        dueAt: 9,
        failedAt: 0,
      })
      await store.instances.setWebhookUrl(instanceId, null)
      await store.events.storeIncoming(lease, incoming({ id: 'e' }), 3)
      const list = async (filter: Parameters<typeof store.events.list>[2]) =>
        (await store.events.list(instanceId, { limit: 10 }, filter)).data.map(({ kind, delivery }) => [
          kind.slice('message.'.length),
          delivery?.state ?? null,
        ])
      expect(await list({})).toEqual([
        ['received', null],
        ['received', 'pending'],
        ['received', 'pending'],
        ['received', 'exhausted'],
        ['received', 'delivered'],
        ['delivered', 'blocked'],
        ['sent', 'pending'],
      ])
      expect(await list({ state: 'pending' })).toEqual([
        ['received', 'pending'],
        ['received', 'pending'],
        ['sent', 'pending'],
      ])
      expect(await list({ state: 'blocked' })).toEqual([['delivered', 'blocked']])
      expect(await list({ state: 'delivered' })).toEqual([['received', 'delivered']])
      expect(await list({ state: 'exhausted' })).toEqual([['received', 'exhausted']])
      expect(await list({ kind: 'message.sent' })).toEqual([['sent', 'pending']])
      expect(await list({ kind: 'message.sent', state: 'delivered' })).toEqual([])
    })

    test('an event with a redelivery is filtered by its latest delivery', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      await store.events.storeIncoming(lease, incoming(), 1)
      const [first] = await listReady(store, instanceId)
      await store.deliveries.recordAttempt(lease, first!, attempt(first!, { status: 500 }), { kind: 'exhausted' })
      await store.deliveries.redeliver(instanceId, first!.eventId, 2)
      const count = async (state: 'pending' | 'delivered' | 'exhausted') =>
        (await store.events.list(instanceId, { limit: 10 }, { state })).data.length
      expect([await count('pending'), await count('exhausted')]).toEqual([1, 0])
      const [again] = await listReady(store, instanceId)
      await store.deliveries.recordAttempt(lease, again!, attempt(again!), { kind: 'delivered' })
      expect([await count('pending'), await count('exhausted'), await count('delivered')]).toEqual([0, 0, 1])
      expect((await store.events.list(instanceId, { limit: 10 })).data).toHaveLength(1)
    })

    test('an event shows its newest 100 deliveries, and one endpoint gets no more than 100 on request', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      await store.events.storeIncoming(lease, incoming(), 1)
      const [{ eventId }] = (await listReady(store, instanceId)) as [DueDelivery]
      for (let count = 1; count <= 100; count += 1) {
        const [due] = await listReady(store, instanceId)
        await store.deliveries.recordAttempt(lease, due!, attempt(due!, { startedAt: count }), { kind: 'delivered' })
        if (count < 100) expect(await store.deliveries.redeliver(instanceId, eventId, 2)).toBe('queued')
      }
      expect(await store.deliveries.redeliver(instanceId, eventId, 2)).toBe('too_many')
      const settings = { url: URL, events: ['*'], active: true, description: null }
      const other = { instanceId, id: newEndpointId(), secret: 'whsec_AAAA', ...settings }
      await store.endpoints.create(other, 0)
      expect(await store.deliveries.redeliver(instanceId, eventId, 2)).toBe('queued')
      const { deliveries, delivery } = (await store.events.find(instanceId, eventId))!
      expect(delivery).toMatchObject({ state: 'pending', endpointId: other.id })
      expect(deliveries).toHaveLength(100)
      // The first delivery is left out.
      const startedAt = deliveries.map(({ log }) => log.map(({ startedAt }) => startedAt))
      expect(startedAt).toEqual([...Array.from({ length: 99 }, (_, index) => [index + 2]), []])
    })

    test('an event with many attempts shows the newest 100 of them', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      await store.events.storeIncoming(lease, incoming(), 1)
      for (let number = 1; number <= 102; number += 1) {
        const [due] = await listReady(store, instanceId)
        const then = { kind: 'retry', dueAt: 2_000, failedAt: 0 } as const
        await store.deliveries.recordAttempt(lease, due!, attempt(due!, { status: 500 }), then)
      }
      const [{ eventId }] = (await listReady(store, instanceId)) as [DueDelivery]
      const { deliveries } = (await store.events.find(instanceId, eventId))!
      const numbers = deliveries.map(({ log }) => log.map(({ attemptNumber }) => attemptNumber))
      expect(numbers).toEqual([Array.from({ length: 100 }, (_, index) => index + 3)])
    })

    test('pages stay stable while events arrive, with and without a filter by state', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      for (let count = 0; count < 7; count += 1) await store.events.storeIncoming(lease, incoming(), count)
      for (const state of [undefined, 'pending'] as const) {
        const before = (await store.events.list(instanceId, { limit: 200 }, { state })).data.map(({ id }) => id)
        const seen: string[] = []
        let cursor: string | null | undefined
        while (cursor !== null) {
          const page = await store.events.list(instanceId, { limit: 3, cursor }, { state })
          seen.push(...page.data.map(({ id }) => id))
          cursor = page.nextCursor
          await store.events.storeIncoming(lease, incoming(), 99)
        }
        expect(seen).toEqual(before)
      }
    })

    test('finds no event of another instance', async () => {
      const { store } = context
      const [lease, other] = [await createConnected(store), await createConnected(store)]
      await store.events.storeIncoming(lease, incoming(), 1)
      const [delivery] = await listReady(store, lease.instanceId)
      expect(await store.events.find(other.instanceId, delivery!.eventId)).toBeNull()
      expect(await store.events.find(lease.instanceId, 'evt_absent')).toBeNull()
      expect(await store.events.find(lease.instanceId, 'evt\0')).toBeNull()
    })
  })
}
