import { describe, expect, test } from 'vitest'
import { messageFailure } from '../../../src/domain/message.ts'
import type { Lease } from '../../../src/store/leases/leases.ts'
import {
  acceptPrepared,
  attempt,
  bodyOf,
  createConnected,
  deliverAll,
  incoming,
  listReady,
  URL,
  watchHints,
  withStore,
} from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'

const ELSEWHERE = 'https://elsewhere.example/hook'

export function deliveriesContract(createHarness: CreateHarness): void {
  describe('deliveries', () => {
    const context = withStore(createHarness)

    async function receive(lease: Lease, id: string): Promise<void> {
      await context.store.events.storeIncoming(lease, incoming({ id }), 1_000)
    }

    async function stateOf(lease: Lease, eventId: string) {
      return (await context.store.events.find(lease.instanceId, eventId))!.delivery
    }

    describe('the order', () => {
      test('a status event waits until its predecessor is delivered or exhausted', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const message = await acceptPrepared(store, lease)
        await store.messages.recordProgress(lease, message.whatsappId, 'read', 1_000)
        const [sent, ...others] = await listReady(store, lease.instanceId)
        expect(sent!.kind).toBe('message.sent')
        expect(others).toEqual([])
        const hints = watchHints(store, lease.instanceId)
        const again = { kind: 'retry', dueAt: 2_000, failedAt: 0 } as const
        await store.deliveries.recordAttempt(lease, sent!, attempt(sent!, { status: 500 }), again)
        expect(hints).toEqual([])
        const [retry, ...more] = await listReady(store, lease.instanceId)
        expect(retry).toMatchObject({ seq: sent!.seq, attemptNumber: 2, dueAt: 2_000 })
        expect(more).toEqual([])
        await store.deliveries.recordAttempt(lease, retry!, attempt(retry!, { status: 500 }), { kind: 'exhausted' })
        expect(hints).toEqual(['deliveries'])
        expect(await deliverAll(store, lease)).toEqual(['message.delivered', 'message.read'])
      })

      test('"failed" also waits for "sent"', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const message = await acceptPrepared(store, lease)
        await store.messages.recordProgress(lease, message.whatsappId, 'sent', 1_000)
        await store.messages.recordFailure(lease, message, messageFailure('rejected_by_whatsapp'), 1_001)
        expect((await listReady(store, lease.instanceId)).map(({ kind }) => kind)).toEqual(['message.sent'])
        expect(await deliverAll(store, lease)).toEqual(['message.sent', 'message.failed'])
      })

      test('it holds across a change of URL; each event keeps the URL of its creation', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const message = await acceptPrepared(store, lease)
        await store.messages.recordProgress(lease, message.whatsappId, 'sent', 1_000)
        await store.instances.setWebhookUrl(lease.instanceId, ELSEWHERE)
        await store.messages.recordProgress(lease, message.whatsappId, 'delivered', 1_001)
        const [sent, ...others] = await listReady(store, lease.instanceId)
        expect(sent).toMatchObject({ kind: 'message.sent', url: URL })
        expect(others).toEqual([])
        await store.deliveries.recordAttempt(lease, sent!, attempt(sent!), { kind: 'delivered' })
        expect(await listReady(store, lease.instanceId)).toMatchObject([{ kind: 'message.delivered', url: ELSEWHERE }])
      })

      test('an event created while no URL is set is stored, is not posted, and blocks nothing', async () => {
        const { store } = context
        const lease = await createConnected(store, { url: null })
        const message = await acceptPrepared(store, lease)
        const hints = watchHints(store, lease.instanceId)
        await store.messages.recordProgress(lease, message.whatsappId, 'sent', 1_000)
        expect(hints).toEqual([])
        await store.instances.setWebhookUrl(lease.instanceId, URL)
        await store.messages.recordProgress(lease, message.whatsappId, 'delivered', 1_001)
        expect((await listReady(store, lease.instanceId)).map(({ kind }) => kind)).toEqual(['message.delivered'])
        const events = await store.messages.listEvents(lease.instanceId, message.id)
        expect(events.map(({ delivery }) => delivery?.state ?? null)).toEqual([null, 'pending'])
      })

      test('messages and incoming messages do not wait for each other', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const [one, other] = [await acceptPrepared(store, lease), await acceptPrepared(store, lease)]
        await store.messages.recordProgress(lease, one.whatsappId, 'delivered', 1_000)
        await receive(lease, 'a')
        await store.messages.recordProgress(lease, other.whatsappId, 'sent', 1_000)
        const kinds = (await listReady(store, lease.instanceId)).map(({ kind }) => kind)
        expect(kinds).toEqual(['message.sent', 'message.received', 'message.sent'])
      })

      test('a redelivery is not part of it: it waits for nothing, and nothing waits for it', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const { instanceId } = lease
        const message = await acceptPrepared(store, lease)
        await store.messages.recordProgress(lease, message.whatsappId, 'sent', 1_000)
        const [sent] = await listReady(store, instanceId)
        await store.deliveries.recordAttempt(lease, sent!, attempt(sent!), { kind: 'delivered' })
        expect(await store.deliveries.redeliver(instanceId, sent!.eventId, 2_000)).toBe('queued')
        await store.messages.recordProgress(lease, message.whatsappId, 'read', 3_000)
        const ready = await listReady(store, instanceId)
        expect(ready.map(({ kind }) => kind)).toEqual(['message.sent', 'message.delivered'])
        await store.deliveries.recordAttempt(lease, ready[0]!, attempt(ready[0]!), { kind: 'delivered' })
        expect((await listReady(store, instanceId)).map(({ kind }) => kind)).toEqual(['message.delivered'])
        expect(await deliverAll(store, lease)).toEqual(['message.delivered', 'message.read'])
      })
    })

    describe('the deliveries that may start', () => {
      test('first attempts are listed in the order of the events, after a cursor', async () => {
        const { store } = context
        const lease = await createConnected(store)
        for (const id of ['a', 'b', 'c', 'd']) await receive(lease, id)
        const two = await store.deliveries.listFirst(lease.instanceId, 0, 2)
        const rest = await store.deliveries.listFirst(lease.instanceId, two[1]!.seq, 10)
        expect([...two, ...rest].map(delivery => bodyOf(delivery).data['id'])).toEqual(['a', 'b', 'c', 'd'])
        expect(new Set([...two, ...rest].map(({ seq }) => seq)).size).toBe(4)
      })

      test('retries are listed in the order of their due times', async () => {
        const { store } = context
        const lease = await createConnected(store)
        for (const id of ['a', 'b', 'c', 'd']) await receive(lease, id)
        const list = (limit: number) => store.deliveries.listRetries(lease.instanceId, limit)
        expect(await list(10)).toEqual([])
        const dueAt = [40, 20, 20, 10]
        for (const [index, delivery] of (await store.deliveries.listFirst(lease.instanceId, 0, 10)).entries()) {
          const failed = attempt(delivery, { status: null, error: 'timeout' })
          await store.deliveries.recordAttempt(lease, delivery, failed, {
            kind: 'retry',
            dueAt: dueAt[index]!,
            failedAt: 0,
          })
        }
        expect(await store.deliveries.listFirst(lease.instanceId, 0, 10)).toEqual([])
        const ids = (deliveries: { body: Uint8Array }[]) => deliveries.map(delivery => bodyOf(delivery).data['id'])
        expect(ids(await list(10))).toEqual(['d', 'b', 'c', 'a'])
        expect(ids(await list(2))).toEqual(['d', 'b'])
      })

      test('every attempt has the same bytes', async () => {
        const { store } = context
        const lease = await createConnected(store)
        await receive(lease, 'é👋\u2028')
        const [first] = await listReady(store, lease.instanceId)
        const failed = attempt(first!, { status: 503 })
        await store.deliveries.recordAttempt(lease, first!, failed, { kind: 'retry', dueAt: 1, failedAt: 0 })
        const [second] = await listReady(store, lease.instanceId)
        expect(Buffer.from(second!.body).equals(Buffer.from(first!.body))).toBe(true)
        const event = await store.events.find(lease.instanceId, first!.eventId)
        expect(Buffer.from(event!.body).equals(Buffer.from(first!.body))).toBe(true)
      })
    })

    describe('an attempt', () => {
      test('is recorded once, however often it is reported', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const message = await acceptPrepared(store, lease)
        await store.messages.recordProgress(lease, message.whatsappId, 'delivered', 1_000)
        const [sent] = await listReady(store, lease.instanceId)
        const record = () => store.deliveries.recordAttempt(lease, sent!, attempt(sent!), { kind: 'delivered' })
        await Promise.all([record(), record(), record()])
        // The first commit may have succeeded without an answer, and so without a hint.
        const hints = watchHints(store, lease.instanceId)
        await record()
        expect(hints).toEqual(['deliveries'])
        const event = await store.events.find(lease.instanceId, sent!.eventId)
        expect(event!.deliveries).toHaveLength(1)
        expect(event!.deliveries[0]).toMatchObject({ state: 'delivered', attempts: 1, nextAttemptAt: null })
        expect(event!.deliveries[0]!.log).toEqual([attempt(sent!)])
        expect((await listReady(store, lease.instanceId)).map(({ kind }) => kind)).toEqual(['message.delivered'])
      })

      test('that is reported again with another outcome changes nothing', async () => {
        const { store } = context
        const lease = await createConnected(store)
        await receive(lease, 'a')
        const [first] = await listReady(store, lease.instanceId)
        const failed = attempt(first!, { status: 500 })
        await store.deliveries.recordAttempt(lease, first!, failed, { kind: 'retry', dueAt: 50, failedAt: 0 })
        await store.deliveries.recordAttempt(lease, first!, failed, { kind: 'retry', dueAt: 99, failedAt: 0 })
        expect(await stateOf(lease, first!.eventId)).toMatchObject({ attempts: 1, nextAttemptAt: 50, state: 'pending' })
      })

      test('is stored with the response, whatever the response contains', async () => {
        const { store } = context
        const lease = await createConnected(store)
        await receive(lease, 'a')
        const [first] = await listReady(store, lease.instanceId)
        const made = attempt(first!, { status: 500, responseExcerpt: 'a\0b\ud800', durationMs: 10.6 })
        await store.deliveries.recordAttempt(lease, first!, made, { kind: 'retry', dueAt: 50, failedAt: 0 })
        const [second] = await listReady(store, lease.instanceId)
        const none = attempt(second!, { status: null, error: 'timeout', responseExcerpt: null })
        await store.deliveries.recordAttempt(lease, second!, none, { kind: 'exhausted' })
        const event = await store.events.find(lease.instanceId, first!.eventId)
        expect(event!.deliveries[0]!.log).toMatchObject([
          { attemptNumber: 1, status: 500, error: null, durationMs: 11, url: URL },
          { attemptNumber: 2, status: null, error: 'timeout', responseExcerpt: null },
        ])
        expect(event!.deliveries[0]!.log[0]!.responseExcerpt).toMatch(/^a.b/)
        expect(event!.delivery).toMatchObject({ state: 'exhausted', attempts: 2 })
      })
    })

    describe('a redelivery', () => {
      test('goes to the current URL, with six attempts of its own, and keeps the earlier attempts', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const { instanceId } = lease
        await receive(lease, 'a')
        const [first] = await listReady(store, instanceId)
        await store.deliveries.recordAttempt(lease, first!, attempt(first!, { status: 500 }), { kind: 'exhausted' })
        await store.instances.setWebhookUrl(instanceId, ELSEWHERE)
        const hints = watchHints(store, instanceId)
        expect(await store.deliveries.redeliver(instanceId, first!.eventId, 5_000)).toBe('queued')
        expect(hints).toEqual(['deliveries'])
        expect(await store.deliveries.redeliver(instanceId, first!.eventId, 5_000)).toBe('still_pending')
        const [again] = await listReady(store, instanceId)
        expect(again).toMatchObject({ eventId: first!.eventId, url: ELSEWHERE, attemptNumber: 1, body: first!.body })
        expect(again!.seq).toBeGreaterThan(first!.seq)
        await store.deliveries.recordAttempt(lease, again!, attempt(again!), { kind: 'delivered' })
        const event = await store.events.find(instanceId, first!.eventId)
        expect(event!.delivery).toMatchObject({ state: 'delivered', redelivery: true, url: ELSEWHERE })
        expect(event!.deliveries).toMatchObject([
          { state: 'exhausted', redelivery: false, log: [{ status: 500 }] },
          { state: 'delivered', redelivery: true, log: [{ status: 200 }] },
        ])
      })

      test('of many events selects by state and time, and takes each event once', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const { instanceId } = lease
        for (let count = 0; count < 12; count += 1) {
          await store.events.storeIncoming(lease, incoming({ id: `m${count}` }), 1_000 + count)
        }
        for (const [index, delivery] of (await listReady(store, instanceId)).entries()) {
          const then = index % 2 === 0 ? ({ kind: 'exhausted' } as const) : ({ kind: 'delivered' } as const)
          await store.deliveries.recordAttempt(lease, delivery, attempt(delivery), then)
        }
        const since = () => store.deliveries.redeliverSince(instanceId, 1_004, 'exhausted', 9_000)
        expect(await since()).toEqual({ kind: 'queued', count: 4 })
        expect(await since()).toEqual({ kind: 'queued', count: 0 })
        const ids = (await listReady(store, instanceId)).map(delivery => bodyOf(delivery).data['id'])
        expect(ids).toEqual(['m4', 'm6', 'm8', 'm10'])
      })

      test('of many events includes those that were created while the clock was ahead', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const { instanceId } = lease
        await store.events.storeIncoming(lease, incoming({ id: 'ahead' }), 9_000)
        const [delivery] = await listReady(store, instanceId)
        await store.deliveries.recordAttempt(lease, delivery!, attempt(delivery!), { kind: 'exhausted' })
        const outcome = await store.deliveries.redeliverSince(instanceId, 1_000, 'exhausted', 5_000)
        expect(outcome).toEqual({ kind: 'queued', count: 1 })
      })

      test('of more events than fit into one commit reaches all of them', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const { instanceId } = lease
        await Promise.all(Array.from({ length: 1_100 }, (_, count) => receive(lease, `m${count}`)))
        const due = await store.deliveries.listFirst(instanceId, 0, 2_000)
        expect(due).toHaveLength(1_100)
        await Promise.all(
          due.map(delivery =>
            store.deliveries.recordAttempt(lease, delivery, attempt(delivery), { kind: 'exhausted' }),
          ),
        )
        const outcome = await store.deliveries.redeliverSince(instanceId, 0, 'exhausted', 5_000)
        expect(outcome).toEqual({ kind: 'queued', count: 1_100 })
        expect(await store.deliveries.listFirst(instanceId, 0, 2_000)).toHaveLength(1_100)
      })

      test('needs an event and a URL', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const { instanceId } = lease
        await receive(lease, 'a')
        const [first] = await listReady(store, instanceId)
        expect(await store.deliveries.redeliver(instanceId, first!.eventId, 0)).toBe('still_pending')
        expect(await store.deliveries.redeliver(instanceId, 'evt_absent', 0)).toBe('no_event')
        expect(await store.deliveries.redeliver('inst_absent', first!.eventId, 0)).toBe('no_event')
        await store.deliveries.recordAttempt(lease, first!, attempt(first!), { kind: 'delivered' })
        await store.instances.setWebhookUrl(instanceId, null)
        expect(await store.deliveries.redeliver(instanceId, first!.eventId, 0)).toBe('no_webhook')
        expect(await store.deliveries.redeliverSince(instanceId, 0, 'delivered', 9_000)).toEqual({ kind: 'no_webhook' })
      })
    })

    test('none is stuck if successors are created while their predecessors finish', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const messages = await Promise.all(Array.from({ length: 1_000 }, () => acceptPrepared(store, lease)))
      await Promise.all(messages.map(message => store.messages.recordProgress(lease, message.whatsappId, 'sent', 1)))
      const sent = await store.deliveries.listFirst(instanceId, 0, 2_000)
      expect(sent).toHaveLength(1_000)
      const finish = sent.map(
        delivery => () => store.deliveries.recordAttempt(lease, delivery, attempt(delivery), { kind: 'delivered' }),
      )
      const follow = messages.map(message => () => store.messages.recordProgress(lease, message.whatsappId, 'read', 2))
      await Promise.all(finish.flatMap((step, index) => [step(), follow[index]!()]))
      let left = 0
      for (;;) {
        const ready = await store.deliveries.listFirst(instanceId, 0, 3_000)
        if (ready.length === 0) break
        left += ready.length
        await Promise.all(
          ready.map(delivery =>
            store.deliveries.recordAttempt(lease, delivery, attempt(delivery), { kind: 'delivered' }),
          ),
        )
      }
      expect(left).toBe(2_000)
      for (const state of ['pending', 'blocked'] as const) {
        expect((await store.events.list(instanceId, { limit: 1 }, { state })).data).toEqual([])
      }
    })
  })
}
