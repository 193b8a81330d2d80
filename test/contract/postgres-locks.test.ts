import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { StoreUnavailable } from '../../src/store/errors.ts'
import type { Store } from '../../src/store/store.ts'
import { onThisMachine } from '../deadlines.ts'
import { until } from '../until.ts'
import { createConnected, hex, idempotency, incoming, listReady, newInstance, newMessage, OWNER } from './fixture.ts'
import { createPostgresHarness, type StoreHarness } from './harness.ts'

/** `holder` stands for a node that froze in a transaction. It keeps its locks until the test rolls back or ends. */
describe('while a node holds a lock and does not answer, the others', () => {
  let harness: StoreHarness
  let holder: pg.Client
  let store: Store

  beforeEach(async () => {
    harness = await createPostgresHarness(inject('postgresUrl'))
    store = await harness.open()
    holder = new pg.Client(harness.options.databaseUrl)
    await holder.connect()
    await holder.query('begin')
  })
  afterEach(async () => {
    await holder.end()
    await harness.dispose()
  })

  const holdKey = (instanceId: string, key: string) =>
    holder.query(
      `insert into idempotency_keys (instance_id, key, digest, message_id, expires_at) values ($1, $2, '', 'msg_0', 4102444800000)`,
      [instanceId, key],
    )
  const accept = (instanceId: string, key?: string) =>
    store.messages.accept(newMessage(instanceId, key === undefined ? {} : { idempotency: idempotency(key) }), 0)
  const oneWaits = () =>
    until('one to wait', async () => {
      const found = `select count(*) as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      return Number((await harness.execute(found))[0]!['n']) > 0
    })
  /** Watches whether a write has ended, however it ends. */
  const watch = (write: Promise<unknown>) => {
    const watched = { hasEnded: false, end: Promise.resolve() }
    const onEnd = () => {
      watched.hasEnded = true
    }
    watched.end = write.then(onEnd, onEnd)
    return watched
  }

  test('renew leases, admit calls and accept messages while a write that belongs to no instance waits', async () => {
    const instance = newInstance()
    await store.instances.create(instance, 0)
    const { instanceId } = await createConnected(store)
    await holder.query(`insert into meta (key, value) values ('probe', '')`)
    const waiting = watch(store.ping())
    await oneWaits()
    const renewed = await store.leases.renew(OWNER)
    expect(renewed.map(lease => lease.instanceId)).toContain(instanceId)
    expect(await store.admission.admit(hex(instance.tokenDigest))).toMatchObject({ calls: 1, limit: 100 })
    expect((await accept(instanceId)).kind).toBe('accepted')
    expect(waiting.hasEnded).toBe(false)
    await waiting.end
  })

  test('renew the other leases while one is locked, and give that one up before it may lapse', async () => {
    const [one, other] = [await createConnected(store), await createConnected(store)]
    const renew = async () => new Set((await store.leases.renew(OWNER)).map(({ instanceId }) => instanceId))
    await holder.query('select 1 from leases where instance_id = $1 for update', [one.instanceId])
    expect(await renew()).toEqual(new Set([one.instanceId, other.instanceId]))
    await holder.query('update leases set lease_until = lease_until - 6000 where instance_id = $1', [one.instanceId])
    await holder.query('commit; begin')
    await holder.query('select 1 from leases where instance_id = $1 for update', [one.instanceId])
    expect(await renew()).toEqual(new Set([other.instanceId]))
    await holder.query('rollback')
    expect(await renew()).toEqual(new Set([one.instanceId, other.instanceId]))
  })

  test('renew leases while the table of the connections is locked', async () => {
    const { instanceId } = await createConnected(store)
    await holder.query('lock table connections in access exclusive mode')
    expect((await store.leases.renew(OWNER)).map(lease => lease.instanceId)).toEqual([instanceId])
  })

  test('renew leases while a redelivery for their instance waits', async () => {
    const lease = await createConnected(store)
    const { instanceId } = lease
    await store.events.storeIncoming(lease, incoming(), 0)
    const [delivery] = await listReady(store, instanceId)
    await holder.query('select 1 from events where instance_id = $1 for update', [instanceId])
    const waiting = watch(store.deliveries.redeliver(instanceId, delivery!.eventId, 1))
    await oneWaits()
    expect((await store.leases.renew(OWNER)).map(renewed => renewed.instanceId)).toEqual([instanceId])
    expect(waiting.hasEnded).toBe(false)
    await waiting.end
  })

  test('refuse only a call with the same key, and accept the calls that arrive with it and after it', async () => {
    const [one, other] = [await createConnected(store), await createConnected(store)]
    await holdKey(one.instanceId, 'held')
    const startedAt = performance.now()
    const repeated = accept(one.instanceId, 'held')
    // So few that a slow machine too finds the waiting one among them before the time for this is over.
    const together = Array.from({ length: 20 }, (_, n) =>
      accept(n % 2 === 0 ? one.instanceId : other.instanceId, `${n}`),
    )
    await expect(repeated).rejects.toThrow(StoreUnavailable)
    for (const { kind } of await Promise.all(together)) expect(kind).toBe('accepted')
    expect((await accept(one.instanceId)).kind).toBe('accepted')
    expect(performance.now() - startedAt).toBeLessThan(onThisMachine(3_000))
    await holder.query('rollback')
    expect((await accept(one.instanceId, 'held')).kind).toBe('accepted')
    expect((await accept(one.instanceId, 'held')).kind).toBe('replayed')
    expect(await store.messages.listQueued(one.instanceId, 500)).toHaveLength(12)
  })

  test('soon accept messages again after many calls whose idempotency keys are locked, none of which is recorded', async () => {
    const [one, other] = [await createConnected(store), await createConnected(store)]
    const keys = Array.from({ length: 100 }, (_, n) => `held ${n}`)
    for (const key of keys) await holdKey(one.instanceId, key)
    const startedAt = performance.now()
    const repeated = Promise.allSettled(keys.map(key => accept(one.instanceId, key)))
    await oneWaits()
    expect((await accept(other.instanceId)).kind).toBe('accepted')
    expect(performance.now() - startedAt).toBeLessThan(onThisMachine(4_000))
    for (const call of await repeated) {
      expect(call).toMatchObject({ status: 'rejected', reason: { name: 'StoreUnavailable' } })
    }
    expect(await store.messages.listQueued(one.instanceId, 500)).toEqual([])
  })

  test('refuse only the writes of the instance whose lease is locked', async () => {
    const [one, other] = [await createConnected(store), await createConnected(store)]
    await holder.query('select 1 from leases where instance_id = $1 for update', [one.instanceId])
    const startedAt = performance.now()
    const blocked = [1, 2].map(() => store.events.storeIncoming(one, incoming(), 0))
    const free = [1, 2].map(() => store.events.storeIncoming(other, incoming(), 0))
    for (const end of await Promise.allSettled(blocked)) {
      expect(end).toMatchObject({ status: 'rejected', reason: { name: 'StoreUnavailable' } })
    }
    expect(await Promise.all(free)).toEqual(['recorded', 'recorded'])
    expect(performance.now() - startedAt).toBeLessThan(onThisMachine(5_000))
    await holder.query('rollback')
    expect((await store.events.list(one.instanceId, { limit: 10 })).data).toEqual([])
    expect(await store.events.storeIncoming(one, incoming(), 0)).toBe('recorded')
  })
})
