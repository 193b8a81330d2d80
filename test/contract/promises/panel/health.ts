import { describe, expect, test } from 'vitest'
import type { HealthReport } from '../../../../src/store/connections/connections.ts'
import { LeaseLost } from '../../../../src/store/errors.ts'
import { accept, acceptPrepared, createConnected, createOwned, incoming, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

const DAY_MS = 86_400_000
const NOW = 10 * DAY_MS

function report(changes: Partial<HealthReport> = {}): HealthReport {
  return {
    lastFrameAt: null,
    acknowledgement: null,
    undecryptable: 0,
    lastUndecryptableAt: null,
    closes: [],
    ...changes,
  }
}

export function healthContract(createHarness: CreateHarness): void {
  describe('health', () => {
    const context = withStore(createHarness)

    test('a connection without a report has no health data', async () => {
      const { store } = context
      const { instanceId } = await createOwned(store)
      expect(await store.connections.findHealth(instanceId, NOW)).toEqual(report())
    })

    test('a report replaces the previous one', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const first = report({ lastFrameAt: 1, acknowledgement: { at: 2, latencyMs: 30 }, undecryptable: 1 })
      await store.connections.recordHealth(lease, first, NOW)
      expect(await store.connections.findHealth(lease.instanceId, NOW)).toEqual(first)
      const second = { ...first, lastFrameAt: 5, undecryptable: 4, lastUndecryptableAt: 5 }
      await Promise.all([first, second].map(one => store.connections.recordHealth(lease, one, NOW)))
      expect(await store.connections.findHealth(lease.instanceId, NOW)).toEqual(second)
    })

    test('closes are counted by code for a day, the most recent first; one that is reported twice counts once', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const closes = [
        { at: NOW - DAY_MS, code: 401 },
        { at: NOW - 3, code: 428 },
        { at: NOW - 2, code: 503 },
        { at: NOW - 1, code: 428 },
      ]
      await store.connections.recordHealth(lease, report({ closes }), NOW)
      await store.connections.recordHealth(lease, report({ closes: closes.slice(3) }), NOW)
      expect((await store.connections.findHealth(lease.instanceId, NOW)).closes).toEqual([
        { code: 428, count: 2, lastAt: NOW - 1 },
        { code: 503, count: 1, lastAt: NOW - 2 },
      ])
      expect((await store.connections.findHealth(lease.instanceId, NOW + DAY_MS)).closes).toEqual([])
    })

    test('a former owner cannot report', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const stale = { ...lease, epoch: lease.epoch - 1 }
      await expect(store.connections.recordHealth(stale, report({ undecryptable: 9 }), NOW)).rejects.toThrow(LeaseLost)
      expect((await store.connections.findHealth(lease.instanceId, NOW)).undecryptable).toBe(0)
    })
  })

  describe('a restriction', () => {
    const context = withStore(createHarness)

    test('stays until it is lifted, whatever else is recorded', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const find = async () => (await store.connections.find(lease.instanceId))!
      expect(await find()).toMatchObject({ restriction: null, retryAt: null })
      const restriction = { since: 5, until: 99, reportedByWhatsapp: true }
      await store.connections.record(lease, { restriction, retryAt: 7 }, 6)
      await store.connections.record(lease, { state: 'reconnecting', reason: 'Cut.' }, 7)
      expect(await find()).toMatchObject({ restriction, retryAt: 7 })
      await store.connections.record(lease, { restriction: null, retryAt: null }, 8)
      expect(await find()).toMatchObject({ restriction: null, retryAt: null })
    })
  })

  describe('contacts', () => {
    const context = withStore(createHarness)
    const NUMBER = '5511977770000'

    test('a number becomes one when a message to it is acknowledged', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const isContact = () => store.numbers.isContact(lease.instanceId, [NUMBER])
      const { whatsappId } = await acceptPrepared(store, lease, { to: NUMBER })
      expect(await isContact()).toBe(false)
      await store.messages.recordProgress(lease, whatsappId, 'delivered', 1)
      expect(await isContact()).toBe(true)
    })

    test('a failed message creates none, and neither does a message to a group', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const failing = await accept(store, lease.instanceId, { to: NUMBER })
      const failure = { code: 'rejected_by_whatsapp', message: 'No.' } as const
      await store.messages.recordFailure(lease, failing, failure, 1)
      const toGroup = await acceptPrepared(store, lease, { to: '120363000000000002@g.us' })
      await store.messages.recordProgress(lease, toGroup.whatsappId, 'sent', 1)
      expect(await store.numbers.isContact(lease.instanceId, [NUMBER, '120363000000000002'])).toBe(false)
    })

    test('a sender becomes one for this instance, unless they write in a group or by LID only', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const other = await createConnected(store)
      await store.events.storeIncoming(lease, incoming({ from: NUMBER }), 1)
      await store.events.storeIncoming(lease, incoming({ from: '5511977770001', group: '12036@g.us' }), 1)
      await store.events.storeIncoming(lease, incoming({ from: '5511977770002', addressing: 'lid' }), 1)
      expect(await store.numbers.isContact(lease.instanceId, ['5511900000000', NUMBER])).toBe(true)
      expect(await store.numbers.isContact(lease.instanceId, ['5511977770001', '5511977770002'])).toBe(false)
      expect(await store.numbers.isContact(other.instanceId, [NUMBER])).toBe(false)
    })

    test('a sender is one under the LID too, but not by what they write in groups', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const [lid, groupLid] = ['990000007654321@lid', '990000007654322@lid']
      const isContact = (...names: string[]) => store.numbers.isContact(lease.instanceId, names)
      await store.events.storeIncoming(lease, incoming({ from: NUMBER, lid }), 1)
      const inGroup = { from: '5511977770001', lid: groupLid, group: '12036@g.us', chat: '12036@g.us' }
      await store.events.storeIncoming(lease, incoming(inGroup), 1)
      expect(await isContact(lid)).toBe(true)
      expect(await isContact('5511900000000', lid)).toBe(true)
      expect(await isContact(groupLid)).toBe(false)
    })

    test('they are deleted when the account is unlinked', async () => {
      const { store } = context
      const lease = await createConnected(store)
      await store.events.storeIncoming(lease, incoming({ from: NUMBER }), 1)
      await store.credentials.clear(lease)
      expect(await store.numbers.isContact(lease.instanceId, [NUMBER])).toBe(false)
    })
  })
}
