import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest'
import { DEFAULT_ENDPOINT, MAX_OPERATOR_ENDPOINTS, OPERATOR_PREFIX } from '../../src/domain/events/endpoint.ts'
import { newEndpointId } from '../../src/domain/ids.ts'
import { MOVE_KEY, ROTATION_KEY } from '../../src/store/encryption/key-check.ts'
import { SharedHints } from '../../src/store/engine/postgres/shared-hints.ts'
import {
  KeyRotationUnfinished,
  LeaseLost,
  MoveUnfinished,
  StoreUnavailable,
  WrongMasterKey,
} from '../../src/store/errors.ts'
import type { Lease } from '../../src/store/leases/leases.ts'
import type { Store } from '../../src/store/store.ts'
import { untilStored } from '../../src/store/until-stored.ts'
import { until } from '../until.ts'
import {
  acceptPrepared,
  attempt,
  createConnected,
  deliverAll,
  hex,
  idempotency,
  incoming,
  listReady,
  newInstance,
  newMessage,
  take,
} from './fixture.ts'
import { createPostgresHarness, type StoreHarness } from './harness.ts'
import { newEntry } from './people/audit.ts'
import { newKey } from './promises/api-keys.ts'
import { storeFile } from './promises/media/media.ts'
import { imported } from './promises/transfers.ts'

/** Behaviour with several nodes on one database. */
describe('several nodes on one PostgreSQL', () => {
  let harness: StoreHarness

  beforeEach(async () => {
    harness = await createPostgresHarness(inject('postgresUrl'))
  })
  afterEach(() => harness.dispose())

  const openNodes = (): Promise<[Store, Store]> => Promise.all([harness.open(), harness.open()])
  /** Connections that wait for a lock. */
  const countWaiting = async () => {
    const found = `select count(*) as n from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`
    return Number((await harness.execute(found))[0]!['n'])
  }

  test('that start at the same time on an empty database migrate it once', async () => {
    const stores = await Promise.all([1, 2, 3, 4].map(() => harness.open()))
    await Promise.all(stores.map(store => store.instances.create(newInstance(), 0)))
    expect((await stores[0]!.instances.list({ limit: 10 })).data).toHaveLength(4)
  })

  test('that start at the same time with different master keys: one creates the database, the others are refused', async () => {
    const keys = [1, 2, 3].map(fill => new Uint8Array(32).fill(fill))
    const outcomes = await Promise.allSettled(keys.map(masterKey => harness.open({ masterKey })))
    const refused = outcomes.filter(outcome => outcome.status === 'rejected')
    expect(refused).toHaveLength(2)
    for (const { reason } of refused) expect(reason).toBeInstanceOf(WrongMasterKey)
  })

  test.each([
    { begun: 'a rotation of the master key', key: ROTATION_KEY, refusal: KeyRotationUnfinished },
    { begun: 'a move into the database', key: MOVE_KEY, refusal: MoveUnfinished },
  ])('$begun that begins before it can see a starting node stops that node', async ({ key, refusal }) => {
    const open = vi.spyOn(SharedHints.prototype, 'open').mockImplementationOnce(async function (this: SharedHints) {
      await harness.execute(`insert into meta (key, value) values ('${key}', '')`)
      await this.open()
    })
    await expect(harness.open()).rejects.toThrow(refusal)
    open.mockRestore()
    await until('its connections to be closed', async () => {
      const found = `select count(*) as n from pg_stat_activity
        where datname = current_database() and application_name = 'pombal'`
      return Number((await harness.execute(found))[0]!['n']) === 0
    })
  })

  test('of concurrent imports of one number on both nodes, exactly one creates an instance', async () => {
    const nodes = await openNodes()
    for (let round = 0; round < 5; round += 1) {
      const { phone } = imported()
      const outcomes = await Promise.all(
        Array.from({ length: 6 }, (_, index) => nodes[index % 2]!.transfers.import(imported({ phone }), 0)),
      )
      const created = outcomes.filter(({ kind }) => kind === 'imported')
      expect(created).toHaveLength(1)
      for (const { kind, id } of outcomes) expect([kind, id]).toEqual([kind, created[0]!.id])
    }
    expect((await nodes[0].instances.list({ limit: 100 })).data).toHaveLength(5)
  })

  test('of concurrent calls with one key on both nodes, exactly one is accepted', async () => {
    const nodes = await openNodes()
    const { instanceId } = await createConnected(nodes[0])
    for (let round = 0; round < 10; round += 1) {
      const keys = Array.from({ length: 20 }, (_, index) => idempotency(`${round}/${index}`))
      const outcomes = await Promise.all(
        [...keys, ...keys.toReversed()].flatMap(key =>
          nodes.map(node => node.messages.accept(newMessage(instanceId, { idempotency: key }), 0)),
        ),
      )
      expect(outcomes.filter(({ kind }) => kind === 'accepted')).toHaveLength(keys.length)
      expect(outcomes.filter(({ kind }) => kind === 'replayed')).toHaveLength(3 * keys.length)
    }
    expect(await nodes[1].messages.listQueued(instanceId, 500)).toHaveLength(200)
  })

  test('a token or key is invalid on all nodes as soon as one node replaces or revokes it or deletes its instance', async () => {
    const [one, other] = await openNodes()
    const [before, after] = [1, 2].map(fill => new Uint8Array(32).fill(fill)) as [Uint8Array, Uint8Array]
    const { id } = await one.instances.create(newInstance({ tokenDigest: before }), 0)
    expect((await other.admission.admit(hex(before)))?.instanceId).toBe(id)
    await one.instances.replaceToken(id, after)
    expect(await other.admission.admit(hex(before))).toBeNull()
    expect((await other.admission.admit(hex(after)))?.instanceId).toBe(id)
    const key = newKey(id)
    const kept = newKey(id)
    await one.apiKeys.create(key, 0)
    await one.apiKeys.create(kept, 0)
    expect((await other.admission.admit(hex(key.digest)))?.key?.id).toBe(key.id)
    expect(await one.apiKeys.revoke(id, key.id)).toBe(true)
    expect(await other.admission.admit(hex(key.digest))).toBeNull()
    expect(await other.admission.admit(hex(kept.digest))).not.toBeNull()
    await one.instances.delete(id, 0)
    expect(await other.admission.admit(hex(after))).toBeNull()
    expect(await other.admission.admit(hex(kept.digest))).toBeNull()
  })

  test('number the events of an instance in the order of their commits, on all nodes together', async () => {
    const store = await harness.open()
    const lease = await createConnected(store)
    const { instanceId } = lease
    await store.events.storeIncoming(lease, incoming(), 1)
    const other = new pg.Client({ connectionString: harness.options.databaseUrl! })
    await other.connect()
    try {
      await other.query('begin')
      await other.query(`insert into events (instance_id, id, kind, timestamp, created_at, body)
        values ('${instanceId}', 'evt_other', 'message.received', 1, 1, '{}')`)
      const recorded = store.events.storeIncoming(lease, incoming(), 1)
      await until('the event to wait', async () => {
        const [row] = await harness.execute('select count(*) as count from pg_locks where not granted')
        return Number(row!['count']) > 0
      })
      const read = async () => (await store.events.readFeed(instanceId, { limit: 10, maxBytes: 10_000 }))!.events
      expect((await read()).map(({ seq }) => seq)).toEqual([1])
      await other.query('commit')
      expect(await recorded).toBe('recorded')
      expect((await read()).map(({ seq, id }) => [seq, id === 'evt_other'])).toEqual([
        [1, false],
        [2, true],
        [3, false],
      ])
    } finally {
      await other.end()
    }
  })

  test('record who did what in one chain, which never forks', async () => {
    const nodes = await openNodes()
    const instances = Array.from({ length: 40 }, () => newInstance())
    await Promise.all(instances.map(instance => nodes[0].instances.create(instance, 0)))
    await Promise.all(
      instances.flatMap(({ id }, index) => [
        nodes[0].audit.during(newEntry(), () => nodes[0].instances.rename(id, 'By one')),
        nodes[1].audit.during(newEntry(), () => nodes[1].instances.rename(id, 'By the other')),
        nodes[index % 2]!.audit.append(newEntry()),
      ]),
    )
    expect(await nodes[0].audit.verify()).toMatchObject({ entries: 120, brokenAt: null })
    expect(await nodes[1].audit.verify()).toMatchObject({ entries: 120, brokenAt: null })
  })

  test('share one rate window', async () => {
    const nodes = await openNodes()
    const instance = newInstance()
    await nodes[0].instances.create(instance, 0)
    const calls = Array.from({ length: 160 }, (_, index) =>
      nodes[index % 2]!.admission.admit(hex(instance.tokenDigest)),
    )
    const admitted = await Promise.all(calls)
    expect(admitted.filter(call => call!.calls <= call!.limit)).toHaveLength(100)
    await harness.execute('update rate_windows set opened_at = opened_at - 59000')
    expect(await nodes[0].admission.admit(hex(instance.tokenDigest))).toMatchObject({ calls: 161, limit: 100 })
    await harness.execute('update rate_windows set opened_at = opened_at - 1000')
    expect(await nodes[1].admission.admit(hex(instance.tokenDigest))).toMatchObject({ calls: 1, limit: 100 })
    const replacement = Buffer.alloc(32, 5)
    await nodes[0].instances.replaceToken(instance.id, replacement)
    expect(await nodes[1].admission.admit(hex(instance.tokenDigest))).toBeNull()
  })

  test('a node that lost its lease writes nothing, whatever the timing of the takeover', async () => {
    const [old, next] = await openNodes()
    for (let round = 0; round < 5; round += 1) {
      const lease = await createConnected(old)
      const { instanceId } = lease
      let written = 0
      let lost = 0
      const write = async () => {
        try {
          await old.events.storeIncoming(lease, incoming(), 0)
          written += 1
        } catch (error) {
          if (!(error instanceof LeaseLost)) throw error
          lost += 1
        }
      }
      const writing = (async () => {
        while (lost === 0) await Promise.all(Array.from({ length: 8 }, write))
      })()
      await harness.execute(`update leases set lease_until = 1 where instance_id = '${instanceId}'`)
      const taken = await until('the takeover', async () => {
        const leases = await next.leases.acquire('node-2', 10)
        return leases.find(found => found.instanceId === instanceId)
      })
      const seen = (await next.events.list(instanceId, { limit: 100_000 })).data.length
      await writing
      expect((await next.events.list(instanceId, { limit: 100_000 })).data).toHaveLength(seen)
      expect(written).toBe(seen)
      expect(await next.events.storeIncoming(taken as Lease, incoming(), 0)).toBe('recorded')
      await next.leases.release(taken as Lease)
    }
  })

  test('no successor is stuck if one node creates it while its predecessor finishes on the other', async () => {
    const [one, other] = await openNodes()
    const lease = await createConnected(one)
    const { instanceId } = lease
    const messages = await Promise.all(Array.from({ length: 1_200 }, () => acceptPrepared(one, lease)))
    await Promise.all(messages.map(message => one.messages.recordProgress(lease, message.whatsappId, 'sent', 1)))
    const sent = await one.deliveries.listFirst(instanceId, 0, 2_000)
    // A few at a time, so that short commits of both nodes overlap in many ways.
    for (let start = 0; start < sent.length; start += 4) {
      await Promise.all(
        sent
          .slice(start, start + 4)
          .flatMap((delivery, index) => [
            one.messages.recordProgress(lease, messages[start + index]!.whatsappId, 'delivered', 2),
            other.deliveries.recordAttempt(lease, delivery, attempt(delivery), { kind: 'delivered' }),
          ]),
      )
    }
    const rest = await one.deliveries.listFirst(instanceId, 0, 2_000)
    expect(rest).toHaveLength(1_200)
    expect((await one.events.list(instanceId, { limit: 1 }, { state: 'blocked' })).data).toEqual([])
  })

  test('a deletion on one node leaves nothing behind, even if the other one is accepting messages', async () => {
    const [one, other] = await openNodes()
    for (let round = 0; round < 5; round += 1) {
      const { instanceId } = await createConnected(one)
      const accepting = Array.from({ length: 40 }, () => other.messages.accept(newMessage(instanceId), 0))
      await one.instances.delete(instanceId, 0)
      const accepted = (await Promise.all(accepting)).filter(({ kind }) => kind === 'accepted')
      const lease = await take(one, instanceId)
      const failure = { code: 'instance_deleted', message: 'Deleted.' } as const
      expect(await one.messages.recordQueueFailed(lease, failure, 1, 100)).toBe(accepted.length)
      await deliverAll(one, lease)
      expect(await one.instances.erase(lease)).toBe(true)
      expect(await harness.execute(`select 1 from messages where instance_id = '${instanceId}'`)).toEqual([])
    }
  })

  test('a message that is being accepted delays a deletion; none is accepted after the deletion', async () => {
    const [one, other] = await openNodes()
    const { instanceId } = await createConnected(one)
    // The acceptance waits for the test after it has read the instance.
    await harness.execute('create table may_go_on ()')
    await harness.execute(`create function wait_for_test() returns trigger language plpgsql as
      'begin while not exists (select from may_go_on) loop perform pg_sleep(0.02); end loop; return new; end'`)
    await harness.execute('create trigger slow before insert on messages for each row execute function wait_for_test()')
    const accepting = other.messages.accept(newMessage(instanceId), 0)
    await until('the acceptance to wait', async () => {
      const found = `select count(*) as n from pg_stat_activity
        where datname = current_database() and wait_event = 'PgSleep'`
      return Number((await harness.execute(found))[0]!['n']) === 1
    })
    let deleted = false
    // On a slow machine the test takes longer than a deletion may wait for a lock. It is then repeated.
    const deleting = untilStored(() => one.instances.delete(instanceId, 0), AbortSignal.timeout(20_000)).then(() => {
      deleted = true
    })
    await until('the deletion to wait', async () => deleted || (await countWaiting()) === 1)
    expect(deleted).toBe(false)
    await harness.execute('insert into may_go_on default values')
    expect((await accepting).kind).toBe('accepted')
    await deleting
    expect(await other.messages.accept(newMessage(instanceId), 0)).toEqual({ kind: 'no_instance' })
  })

  test('of two nodes that create the tenth operator endpoint at the same time, one is refused', async () => {
    const [one, other] = await openNodes()
    const create = (store: Store) => {
      const id = newEndpointId(OPERATOR_PREFIX)
      const endpoint = { id, secret: 'whsec_b3BlcmF0b3I=', url: 'https://operator.example/hook', events: [] }
      return store.operatorEndpoints.create({ ...endpoint, active: true, description: null }, 1)
    }
    for (let count = 1; count < MAX_OPERATOR_ENDPOINTS; count += 1) await create(one)
    const holder = new pg.Client(harness.options.databaseUrl)
    await holder.connect()
    try {
      // Rows can be read but not inserted, so both have counted before either inserts, unless one waits for the other.
      await holder.query('begin')
      await holder.query('lock table operator_endpoints in share mode')
      const creating = Promise.all(
        [one, other].map(node => untilStored(() => create(node), AbortSignal.timeout(20_000))),
      )
      await until('both to wait', async () => (await countWaiting()) >= 2)
      await holder.query('rollback')
      expect((await creating).map(({ kind }) => kind).toSorted()).toEqual(['created', 'too_many'])
    } finally {
      await holder.end()
    }
    expect(await one.operatorEndpoints.list()).toHaveLength(MAX_OPERATOR_ENDPOINTS)
  })

  test("a message is accepted while a commit of its instance's owner waits", async () => {
    const [store] = await openNodes()
    const lease = await createConnected(store)
    const { instanceId } = lease
    const holder = new pg.Client(harness.options.databaseUrl)
    await holder.connect()
    try {
      await holder.query('begin')
      await holder.query('select 1 from leases where instance_id = $1 for update', [instanceId])
      let recorded = false
      const message = incoming()
      const record = () => store.events.storeIncoming(lease, message, 0)
      const recording = untilStored(record, AbortSignal.timeout(20_000)).then(() => {
        recorded = true
      })
      expect((await store.messages.accept(newMessage(instanceId), 0)).kind).toBe('accepted')
      expect(recorded).toBe(false)
      await holder.query('rollback')
      await recording
    } finally {
      await holder.end()
    }
  })

  test('redeliveries requested on one node never get a number that the other node has passed', async () => {
    const [owner, other] = await openNodes()
    const lease = await createConnected(owner)
    const { instanceId } = lease
    await Promise.all(Array.from({ length: 50 }, () => owner.events.storeIncoming(lease, incoming(), 0)))
    const first = await listReady(owner, instanceId)
    const deliver = (delivery: (typeof first)[number]) =>
      owner.deliveries.recordAttempt(lease, delivery, attempt(delivery), { kind: 'delivered' })
    await Promise.all(first.map(deliver))
    let done = false
    const arriving = (async () => {
      while (!done) await Promise.all([1, 2, 3].map(() => owner.events.storeIncoming(lease, incoming(), 0)))
    })()
    const asking = Promise.all(first.map(({ eventId }) => other.deliveries.redeliver(instanceId, eventId, 1)))
    let cursor = 0
    const seen = new Set<string>()
    const collect = async () => {
      for (const delivery of await owner.deliveries.listFirst(instanceId, cursor, 1_000)) {
        cursor = delivery.seq
        seen.add(delivery.eventId)
      }
    }
    void asking.then(() => {
      done = true
    })
    while (!done) await collect()
    await arriving
    await collect()
    expect(first.filter(({ eventId }) => !seen.has(eventId))).toEqual([])
  })

  test('a lost connection is reported as unavailable and replaced, and the process continues', async () => {
    const [store] = await openNodes()
    const lease = await createConnected(store)
    const kill = `select count(pg_terminate_backend(pid)) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`
    const unavailable = (error: unknown) => {
      if (!(error instanceof StoreUnavailable)) throw error
    }
    for (let round = 0; round < 3; round += 1) {
      const working = Promise.all(
        Array.from({ length: 60 }, async () => {
          await store.events.storeIncoming(lease, incoming(), 0).catch(unavailable)
          await store.instances.find(lease.instanceId).catch(unavailable)
        }),
      )
      await harness.execute(kill)
      await working
    }
    await until('the store to heal', () => store.ping().then(() => true, unavailable))
    expect(await store.events.storeIncoming(lease, incoming(), 0)).toBe('recorded')
  })

  test('endpoints are created and changed once no node of the previous version is left', async () => {
    const store = await harness.open()
    const { instanceId } = await createConnected(store)
    const settings = { url: 'https://other.example/', events: ['*'], active: true, description: null }
    const create = () =>
      store.endpoints.create({ instanceId, id: newEndpointId(), secret: 'whsec_AAAA', ...settings }, Date.now())
    const change = () => store.endpoints.change(instanceId, DEFAULT_ENDPOINT, { active: false })
    await store.leases.attend('new node')
    const until = `(extract(epoch from clock_timestamp()) * 1000)::bigint + 8000`
    await harness.execute(`insert into nodes (id, started_at, seen_until) values ('old node', 0, ${until})`)
    expect([(await create()).kind, (await change()).kind]).toEqual(['old_nodes', 'old_nodes'])
    await store.leases.leave('old node')
    // It stops, but still records the events of its instances.
    await store.instances.create(newInstance(), 0)
    expect(await store.leases.acquire('old node', 1)).toHaveLength(1)
    expect([(await create()).kind, (await change()).kind]).toEqual(['old_nodes', 'old_nodes'])
    await harness.execute(`update leases set owner = null, lease_until = 0 where owner = 'old node'`)
    expect([(await create()).kind, (await change()).kind]).toEqual(['created', 'changed'])
  })

  test('a node that is stopping does not count as one of the previous version, and its row disappears afterwards', async () => {
    const store = await harness.open()
    const lease = await createConnected(store)
    await store.leases.attend('other node')
    const create = () =>
      store.operatorEndpoints.create(
        {
          id: newEndpointId(OPERATOR_PREFIX),
          secret: 'whsec_AAAA',
          url: 'https://operator.example/',
          events: ['instance.*'],
          active: true,
          description: null,
        },
        Date.now(),
      )
    await store.leases.leave(lease.owner)
    expect((await create()).kind).toBe('created')
    expect(await store.leases.attend('other node')).toMatchObject({ nodes: 1 })
    expect((await create()).kind).toBe('created')
    await store.leases.release(lease)
    await store.leases.attend('other node')
    expect(await harness.execute('select id from nodes')).toEqual([{ id: 'other node' }])
  })

  test('an operator endpoint is created once no node of the previous version is left', async () => {
    const store = await harness.open()
    const settings = { url: 'https://operator.example/', events: ['instance.*'], active: true, description: null }
    const create = () =>
      store.operatorEndpoints.create(
        { id: newEndpointId(OPERATOR_PREFIX), secret: 'whsec_AAAA', ...settings },
        Date.now(),
      )
    await store.leases.attend('new node')
    const until = `(extract(epoch from clock_timestamp()) * 1000)::bigint + 8000`
    await harness.execute(
      `insert into nodes (id, started_at, seen_until, endpoints) values ('old node', 0, ${until}, 1)`,
    )
    expect((await create()).kind).toBe('old_nodes')
    await store.leases.leave('old node')
    expect((await create()).kind).toBe('created')
  })

  test('two nodes together create at most ten operator endpoints', async () => {
    const [one, other] = [await harness.open(), await harness.open()]
    const settings = { url: 'https://operator.example/', events: ['instance.*'], active: true, description: null }
    const create = (store: Store) =>
      store.operatorEndpoints.create(
        { id: newEndpointId(OPERATOR_PREFIX), secret: 'whsec_AAAA', ...settings },
        Date.now(),
      )
    const outcomes = await Promise.all([...Array(8).keys()].flatMap(() => [create(one), create(other)]))
    expect(outcomes.filter(({ kind }) => kind === 'created')).toHaveLength(10)
    expect(await one.operatorEndpoints.list()).toHaveLength(10)
  })

  test('files are accepted once no node of the previous version is left, which would send their captions as texts', async () => {
    const store = await harness.open()
    const lease = await createConnected(store)
    const { media } = await storeFile(store, lease.instanceId)
    const file = { mediaId: media.id, form: null, filename: null }
    const key = idempotency('once')
    const accept = () => store.messages.accept(newMessage(lease.instanceId, { file, idempotency: key }), Date.now())
    const until = `(extract(epoch from clock_timestamp()) * 1000)::bigint + 8000`
    await harness.execute(
      `insert into nodes (id, started_at, seen_until, endpoints) values ('old node', 0, ${until}, 1)`,
    )
    expect((await accept()).kind).toBe('old_nodes')
    expect((await store.messages.accept(newMessage(lease.instanceId), Date.now())).kind).toBe('accepted')
    await store.leases.leave('old node')
    expect((await accept()).kind).toBe('accepted')
  })

  test('an owner that died counts as a node of this version until its leases have ended', async () => {
    const store = await harness.open()
    const { id: instanceId } = await store.instances.create(newInstance(), 0)
    await store.leases.attend('dead node')
    await store.leases.acquire('dead node', 1)
    await harness.execute(`update nodes set seen_until = 0 where id = 'dead node'`)
    const { shares } = await store.leases.attend('new node')
    expect(shares.whatsapp).toBe(1)
    const settings = { url: 'https://other.example/', events: ['*'], active: true, description: null }
    const created = await store.endpoints.create(
      { instanceId, id: newEndpointId(), secret: 'whsec_AAAA', ...settings },
      0,
    )
    expect(created.kind).toBe('created')
    await harness.execute(`update leases set lease_until = 0`)
    await store.leases.attend('new node')
    expect(await harness.execute('select id from nodes')).toEqual([{ id: 'new node' }])
  })

  test('a node of the previous version that erases events leaves a note for the readers of the feed', async () => {
    const store = await harness.open()
    const lease = await createConnected(store)
    for (let n = 0; n < 3; n += 1) await store.events.storeIncoming(lease, incoming(), 1)
    await harness.execute(`delete from events where instance_id = '${lease.instanceId}' and seq <= 2`)
    const page = { limit: 10, maxBytes: 100_000 }
    expect(await store.events.readFeed(lease.instanceId, { ...page, after: { seq: 1, mark: null } })).toBeNull()
    expect((await store.events.readFeed(lease.instanceId, page))?.events.map(({ seq }) => seq)).toEqual([3])
  })

  test('a missing database is reported as unavailable', async () => {
    const databaseUrl = 'postgres://postgres@127.0.0.1:1/postgres'
    await expect(harness.open({ databaseUrl })).rejects.toThrow(StoreUnavailable)
  })
})
