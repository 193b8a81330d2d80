import { afterEach, describe, expect, test } from 'vitest'
import { messageFailure } from '../../../src/domain/message.ts'
import { LeaseLost } from '../../../src/store/errors.ts'
import type { Lease } from '../../../src/store/leases/leases.ts'
import type { Store } from '../../../src/store/store.ts'
import {
  accept,
  acceptPrepared,
  attempt,
  createConnected,
  incoming,
  listReady,
  newInstance,
  PREPARED,
  take,
} from '../fixture.ts'
import type { CreateHarness, StoreHarness } from '../harness.ts'

/** PostgreSQL truncates times, and its clock may differ from that of this process. */
const CLOCKS_MS = 100

export function ownershipContract(createHarness: CreateHarness): void {
  describe('ownership', () => {
    let harness: StoreHarness
    let store: Store

    async function open(): Promise<void> {
      harness = await createHarness()
      store = await harness.open()
    }

    afterEach(() => harness.dispose())

    /** Makes the lease lapse, as after 15 s without a renewal. */
    const lapse = () => harness.execute('update leases set lease_until = 1')

    test('free instances are acquired up to a limit, each by one owner only', async () => {
      await open()
      for (let count = 0; count < 5; count += 1) await store.instances.create(newInstance(), 0)
      const [one, other] = await Promise.all([store.leases.acquire('a', 3), store.leases.acquire('b', 3)])
      expect([one.length, other.length].toSorted()).toEqual([2, 3])
      expect(new Set([...one, ...other].map(({ instanceId }) => instanceId)).size).toBe(5)
      expect(await store.leases.acquire('c', 10)).toEqual([])
      expect(one.every(({ owner, epoch }) => owner === 'a' && epoch === 1)).toBe(true)
    })

    test('a lease lasts 15 s, and longer if it is renewed', async () => {
      await open()
      await store.instances.create(newInstance(), 0)
      const before = Date.now()
      const [lease] = await store.leases.acquire('a', 1)
      const after = Date.now()
      const until = async () => Number((await harness.execute('select lease_until from leases'))[0]!['lease_until'])
      expect(await until()).toBeGreaterThanOrEqual(before + 15_000 - CLOCKS_MS)
      expect(await until()).toBeLessThanOrEqual(after + 15_000 + CLOCKS_MS)
      const soon = Date.now() + 5_000
      await harness.execute(`update leases set lease_until = ${soon}`)
      expect(await store.leases.renew('a')).toEqual([lease])
      expect(await until()).toBeGreaterThan(soon + 5_000)
    })

    test('a lapsed lease cannot be renewed, and goes to the next owner under a higher epoch', async () => {
      await open()
      await store.instances.create(newInstance(), 0)
      const [lease] = await store.leases.acquire('a', 1)
      await lapse()
      expect(await store.leases.renew('a')).toEqual([])
      const [next] = await store.leases.acquire('b', 1)
      expect(next).toMatchObject({ instanceId: lease!.instanceId, owner: 'b', epoch: lease!.epoch + 1 })
      expect(await store.leases.renew('b')).toEqual([next])
      expect(await store.leases.renew('a')).toEqual([])
    })

    test('shares add up to all instances, with the largest for the oldest node and none for a node that leaves', async () => {
      await open()
      for (let count = 0; count < 5; count += 1) await store.instances.create(newInstance(), 0)
      expect(await store.leases.attend('a')).toMatchObject({
        shares: { whatsapp: 5, sandbox: 0 },
        nodes: 1,
        nextLapseMs: null,
      })
      await harness.execute('update nodes set started_at = started_at - 1')
      expect(await store.leases.attend('b')).toMatchObject({ shares: { whatsapp: 2 }, nodes: 2 })
      expect(await store.leases.attend('a')).toMatchObject({ shares: { whatsapp: 3 }, nodes: 2 })
      await store.leases.leave('b')
      expect(await store.leases.attend('a')).toMatchObject({ shares: { whatsapp: 5 }, nodes: 1 })
      await store.leases.attend('b')
      await harness.execute("update nodes set seen_until = 1 where id = 'b'")
      expect(await store.leases.attend('a')).toMatchObject({ shares: { whatsapp: 5 }, nodes: 1 })
    })

    test('nodes with the sandbox off have a share of sandbox instances only while no node has it on', async () => {
      await open()
      for (let count = 0; count < 3; count += 1) await store.instances.create(newInstance({ kind: 'sandbox' }), 0)
      expect(await store.leases.attend('a', ['whatsapp'])).toMatchObject({
        shares: { whatsapp: 0, sandbox: 3 },
        leftOver: ['whatsapp', 'sandbox'],
      })
      expect(await store.leases.attend('b')).toMatchObject({ shares: { sandbox: 3 }, nodes: 2 })
      expect(await store.leases.attend('a', ['whatsapp'])).toMatchObject({
        shares: { whatsapp: 0, sandbox: 0 },
        leftOver: ['whatsapp'],
      })
      expect(await store.leases.acquire('a', 10, ['whatsapp'])).toEqual([])
      expect(await store.leases.acquire('b', 10, ['sandbox'])).toHaveLength(3)
    })

    test('a node learns when the next lease of another node lapses', async () => {
      await open()
      await store.instances.create(newInstance(), 0)
      const before = Date.now()
      await store.leases.acquire('a', 1)
      const { nextLapseMs } = await store.leases.attend('b')
      expect(nextLapseMs).toBeGreaterThanOrEqual(15_000 - (Date.now() - before) - CLOCKS_MS)
      expect(nextLapseMs).toBeLessThanOrEqual(15_000)
      expect(await store.leases.attend('a')).toMatchObject({ nextLapseMs: null })
      await lapse()
      expect(await store.leases.attend('b')).toMatchObject({ nextLapseMs: null })
    })

    test('an instance counts as left over once it has been free for 5 s', async () => {
      await open()
      await store.instances.create(newInstance(), 0)
      expect(await store.leases.acquireLeftOver('a', 10)).toEqual([])
      await harness.execute('update leases set lease_until = lease_until - 5000')
      expect(await store.leases.acquireLeftOver('a', 10)).toHaveLength(1)
    })

    test('a released lease is free immediately, and only its holder can release it', async () => {
      await open()
      await store.instances.create(newInstance(), 0)
      const [lease] = await store.leases.acquire('a', 1)
      await store.leases.release({ ...lease!, epoch: 0 })
      expect(await store.leases.acquire('b', 1)).toEqual([])
      await store.leases.release(lease!)
      expect(await store.leases.acquire('b', 1)).toHaveLength(1)
      await store.leases.release(lease!)
      expect(await store.leases.renew('b')).toHaveLength(1)
    })

    test('a released lease is free even if its release is in the future after a step of the clock', async () => {
      await open()
      for (let count = 0; count < 2; count += 1) await createConnected(store)
      for (const lease of await store.leases.renew('node-1')) await store.leases.release(lease)
      await harness.execute('update leases set lease_until = lease_until + 7200000')
      expect((await store.statistics.totals()).unowned).toBe(2)
      expect(await store.leases.acquireLeftOver('a', 10)).toEqual([])
      expect(await store.leases.acquire('a', 10)).toHaveLength(2)
      expect(await store.leases.acquire('b', 10)).toEqual([])
    })

    test('after a step of the clock, leases and nodes that are gone last no longer than others', async () => {
      await open()
      await store.instances.create(newInstance(), 0)
      await store.leases.attend('gone')
      await store.leases.acquire('gone', 1)
      await harness.execute('update leases set lease_until = lease_until + 7200000')
      await harness.execute('update nodes set seen_until = seen_until + 7200000')
      expect((await store.leases.attend('a')).nextLapseMs).toBeLessThanOrEqual(15_000)
      const [{ longest } = {}] = await harness.execute('select max(seen_until) as longest from nodes')
      expect(Number(longest)).toBeLessThan(Date.now() + 8_000 + CLOCKS_MS)
    })

    test('deleted instances are acquired too, until they are erased', async () => {
      await open()
      const { id } = await store.instances.create(newInstance(), 0)
      await store.instances.delete(id, 0)
      const [lease] = await store.leases.acquire('a', 10)
      expect(lease!.instanceId).toBe(id)
      expect(await store.instances.erase(lease!)).toBe(true)
      expect(await store.leases.acquire('a', 10)).toEqual([])
    })

    test('every write of a former owner is refused', async () => {
      await open()
      const lease = await createConnected(store)
      const { instanceId } = lease
      const [sent, queued] = [await acceptPrepared(store, lease), await accept(store, instanceId)]
      await store.messages.recordProgress(lease, sent.whatsappId, 'sent', 1)
      const [delivery] = await listReady(store, instanceId)
      await store.credentials.set(lease, [{ type: 'session', id: '1', value: Buffer.from('now') }])
      await lapse()
      await take(store, instanceId, 'node-2')
      const before = await snapshot(harness)

      const failure = messageFailure('expired')
      const prepared = { address: 'a@s', content: Buffer.from('x') }
      const late = Buffer.from('late')
      const writes: ((lease: Lease) => Promise<unknown>)[] = [
        old => store.connections.record(old, { state: 'reconnecting' }, 5),
        old => store.messages.recordPrepared(old, queued.id, prepared),
        old => store.messages.recordProgress(old, sent.whatsappId, 'read', 5),
        old => store.messages.recordFailure(old, queued, failure, 5),
        old => store.messages.recordQueueFailed(old, failure, 5, 10),
        old => store.events.storeIncoming(old, incoming(), 5),
        old => store.deliveries.recordAttempt(old, delivery!, attempt(delivery!), { kind: 'delivered' }),
        old => store.credentials.set(old, [{ type: 'session', id: '1', value: late }]),
        old => store.credentials.clear(old),
        old => store.sandbox.write(old, [{ key: 'k', value: late }]),
        old => store.numbers.record(old, '551', null, 5),
        old => store.instances.erase(old),
      ]
      for (const old of [lease, { ...lease, owner: 'node-2' }, { ...lease, epoch: lease.epoch + 1 }]) {
        const outcomes = await Promise.allSettled(writes.map(write => write(old)))
        for (const outcome of outcomes) {
          expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'LeaseLost', instanceId } })
        }
      }
      expect(await snapshot(harness)).toEqual(before)
    })

    test('a moved lease affects later units of the same commit', async () => {
      await open()
      const released = await createConnected(store)
      const deleted = await createConnected(store)
      const before = await accept(store, deleted.instanceId)
      const key = { type: 'session', id: 'a', value: new Uint8Array(3) }
      const writes = await Promise.allSettled([
        store.messages.recordProgress(deleted, before.whatsappId, 'sent', 1_000),
        store.leases.release(released),
        store.instances.delete(deleted.instanceId, 1_001),
        store.credentials.set(released, [key]),
        store.credentials.set(deleted, [key]),
      ])
      expect(writes.slice(0, 3).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
      for (const write of writes.slice(3)) {
        expect(write).toMatchObject({ status: 'rejected', reason: expect.any(LeaseLost) })
      }
      expect((await store.credentials.get(deleted.instanceId, 'session', ['a'])).size).toBe(0)
    })

    test("a former owner's write does not fail the others of its commit", async () => {
      await open()
      const [kept, lost] = [await createConnected(store), await createConnected(store)]
      const message = await accept(store, kept.instanceId)
      const stale = { ...lost, epoch: lost.epoch - 1 }
      const key = { type: 'session', id: 'a', value: new Uint8Array(3) }
      const outcomes = await Promise.allSettled([
        store.events.storeIncoming(kept, incoming(), 1),
        store.credentials.set(kept, [key]),
        store.messages.recordPrepared(kept, message.id, PREPARED),
        store.events.storeIncoming(lost, incoming(), 1),
        store.events.storeIncoming(stale, incoming(), 1),
        store.credentials.set(stale, [key]),
        // For example, another owner has erased the instance.
        store.messages.recordPrepared(stale, 'msg_absent', PREPARED),
      ])
      const isFulfilled = ({ status }: PromiseSettledResult<unknown>) => status === 'fulfilled'
      expect(outcomes.map(isFulfilled)).toEqual([true, true, true, true, false, false, false])
      for (const outcome of outcomes.slice(4)) {
        expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(LeaseLost)
      }
      for (const { instanceId } of [kept, lost]) {
        expect((await store.events.list(instanceId, { limit: 10 })).data).toHaveLength(1)
      }
      expect((await store.credentials.get(kept.instanceId, 'session', ['a'])).size).toBe(1)
      expect((await store.credentials.get(lost.instanceId, 'session', ['a'])).size).toBe(0)
      expect(await store.messages.findSent(kept.instanceId, message.whatsappId)).not.toBeNull()
    })

    test('a failing write rejects alone if all leases are held', async () => {
      await open()
      const lease = await createConnected(store)
      const key = { type: 'session', id: 'a', value: new Uint8Array(3) }
      const outcomes = await Promise.allSettled([
        store.credentials.set(lease, [key]),
        store.messages.recordPrepared(lease, 'msg_absent', PREPARED),
        store.events.storeIncoming(lease, incoming(), 1),
      ])
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect((outcomes[1] as PromiseRejectedResult).reason.message).toContain('msg_absent')
      expect((await store.credentials.get(lease.instanceId, 'session', ['a'])).size).toBe(1)
      expect((await store.events.list(lease.instanceId, { limit: 10 })).data).toHaveLength(1)
    })
  })
}

/** The rows that a late write could change. */
async function snapshot(harness: StoreHarness): Promise<unknown> {
  const tables = ['connections', 'messages', 'events', 'deliveries', 'finished_deliveries', 'attempts', 'credentials']
  const rows: unknown[] = []
  for (const table of [...tables, 'numbers', 'leases']) rows.push(await harness.execute(`select * from ${table}`))
  return rows
}
