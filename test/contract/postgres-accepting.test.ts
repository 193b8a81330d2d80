import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import type { CallersMessage, Lease, Store } from '../../src/store/store.ts'
import { until } from '../until.ts'
import { createOwned, hex, newInstance, newMessage, watchHints } from './fixture.ts'
import { createPostgresHarness, type StoreHarness } from './harness.ts'

interface Caller {
  lease: Lease
  instanceId: string
  digest: string
}

/** Counting a call and accepting its message in one statement, which only PostgreSQL needs. */
describe('a call and its message in one visit', () => {
  let harness: StoreHarness
  let store: Store

  beforeEach(async () => {
    harness = await createPostgresHarness(inject('postgresUrl'))
    store = await harness.open()
  })
  afterEach(() => harness.dispose())

  /** Connected; its window is open with `calls` in it, or not there. */
  async function createCaller(calls: number | null = 0): Promise<Caller> {
    const { tokenDigest } = newInstance()
    const lease = await createOwned(store, { tokenDigest })
    const { instanceId } = lease
    await store.connections.record(lease, { state: 'connected', reason: 'Connected.' }, Date.now())
    if (calls !== null) {
      await store.admission.admit(hex(tokenDigest))
      await harness.execute(`update rate_windows set calls = ${calls} where instance_id = '${instanceId}'`)
    }
    return { lease, instanceId, digest: hex(tokenDigest) }
  }

  function textFor(changes: Partial<CallersMessage> = {}): CallersMessage {
    const { id, to, text, whatsappId } = newMessage('', changes)
    return { id, to, text, whatsappId }
  }

  const call = ({ digest }: Pick<Caller, 'digest'>, message = textFor(), node = store) =>
    node.admission.admitAndAccept!(digest, message, 1_000)

  const callsOf = async (instanceId: string) =>
    (await harness.execute(`select calls from rate_windows where instance_id = '${instanceId}'`))[0]?.['calls']

  const queuedOf = async ({ instanceId }: Caller) =>
    (await store.messages.listQueued(instanceId, 500)).map(({ id }) => id)

  test('counts the call, stores the message as it was written, and hints', async () => {
    const caller = await createCaller(7)
    const hints = watchHints(store, caller.instanceId)
    const message = textFor({ text: 'Olá 👋\nsecond "line" \\ {1,2} NULL' })
    const admitted = await call(caller, message)
    expect(admitted).toMatchObject({ instanceId: caller.instanceId, withinRate: true, limit: 100, remaining: 92 })
    expect(admitted!.resetMs).toBeGreaterThan(55_000)
    expect(admitted!.resetMs).toBeLessThanOrEqual(60_000)
    expect(hints).toEqual(['queued'])
    const { to, text } = message
    expect(await store.messages.find(caller.instanceId, message.id)).toMatchObject({
      ...{ to, text, state: 'queued', createdAt: 1_000 },
    })
    expect(await store.messages.listQueued(caller.instanceId, 10)).toMatchObject([{ whatsappId: message.whatsappId }])
  })

  test('the texts of one commit are stored as they were written', async () => {
    const caller = await createCaller()
    const written = ['plain', '"', '\\', '{a,b}', 'NULL', '', ' ', 'olá 👋', '\t\n', "'", '\\"', 'NUL: \0', '\ud83d']
    const messages = written.map(text => textFor({ text }))
    await Promise.all(messages.map(message => call(caller, message)))
    const stored = await store.messages.listQueued(caller.instanceId, 500)
    expect(stored.map(({ text }) => text)).toEqual([...written.slice(0, -2), 'NUL: \ufffd', '\ufffd'])
    const plain = ['a', 'olá 👋', 'NULL', '{a,b}'].map(text => textFor({ text }))
    await Promise.all(plain.map(message => call(caller, message)))
    const added = (await store.messages.listQueued(caller.instanceId, 500)).slice(written.length)
    expect(added.map(({ text }) => text)).toEqual(plain.map(({ text }) => text))
  })

  test('a window that is over opens anew', async () => {
    const caller = await createCaller(100)
    expect(await call(caller)).toBeNull()
    await harness.execute('update rate_windows set opened_at = opened_at - 60000')
    const admitted = await call(caller)
    expect(admitted).toMatchObject({ withinRate: true, remaining: 99 })
    expect(admitted!.resetMs).toBeGreaterThan(55_000)
    expect(await callsOf(caller.instanceId)).toBe('1')
  })

  test('whatever speaks against a call: nothing is counted and nothing stored', async () => {
    expect(await call({ digest: '00'.repeat(32) })).toBeNull()
    const unseen = await createCaller(null)
    expect(await call(unseen)).toBeNull()
    expect(await callsOf(unseen.instanceId)).toBeUndefined()

    const caller = await createCaller(3)
    for (const state of ['unlinked', 'linking', 'connecting', 'reconnecting', 'stopped', 'logged_out'] as const) {
      await store.connections.record(caller.lease, { state, reason: state }, 0)
      expect(await call(caller)).toBeNull()
    }
    await store.connections.record(caller.lease, { state: 'connected', reason: 'Connected.' }, 0)
    expect(await call(caller)).not.toBeNull()
    await harness.execute(`update leases set lease_until = 0 where instance_id = '${caller.instanceId}'`)
    expect(await call(caller)).toBeNull()
    expect(await callsOf(caller.instanceId)).toBe('4')
    expect(await queuedOf(caller)).toHaveLength(1)

    await store.instances.replaceToken(caller.instanceId, Buffer.alloc(32, 1))
    expect(await call(caller)).toBeNull()
  })

  test('exactly the limit is admitted, however many calls come at once to two nodes', async () => {
    const nodes = [store, await harness.open()] as const
    const caller = await createCaller(0)
    const other = await createCaller(0)
    let acceptedAtOnce = 0
    // Calls that share a statement are counted all or none: those that are not go the long way, one by one.
    const calls = Array.from({ length: 160 }, async (_, index) => {
      const node = nodes[index % 2]!
      const atOnce = await call(caller, textFor(), node)
      if (atOnce !== null) acceptedAtOnce += 1
      return (atOnce ?? (await node.admission.admit(caller.digest)))!
    })
    const others = Array.from({ length: 20 }, (_, index) => call(other, textFor(), nodes[index % 2]))
    const admitted = (await Promise.all(calls)).filter(({ withinRate }) => withinRate)
    expect(admitted.map(({ remaining }) => remaining).sort((a, b) => b - a)).toEqual([...Array(100).keys()].reverse())
    expect((await Promise.all(others)).filter(one => one !== null)).toHaveLength(20)
    expect(await queuedOf(caller)).toHaveLength(acceptedAtOnce)
    expect(await queuedOf(other)).toHaveLength(20)
  })

  test('messages of one caller that are handed in together are queued in that order', async () => {
    const caller = await createCaller(0)
    const messages = Array.from({ length: 40 }, () => textFor())
    await Promise.all(messages.map(message => call(caller, message)))
    expect(await queuedOf(caller)).toEqual(messages.map(({ id }) => id))
  })

  describe('while the instance is being deleted', () => {
    let client: pg.Client

    beforeEach(async () => {
      client = new pg.Client(harness.options.databaseUrl)
      await client.connect()
    })
    afterEach(() => client.end())

    const untilWaiting = (count: number) =>
      until('statements that wait for the window', async () => {
        const rows = await harness.execute(
          `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        )
        return rows.length === count ? true : undefined
      })

    async function holdWindow({ instanceId }: Caller): Promise<void> {
      await client.query('begin')
      await client.query('select 1 from rate_windows where instance_id = $1 for update', [instanceId])
    }

    test('a call that comes after finds nothing to be counted in, although it still saw the instance', async () => {
      const caller = await createCaller(0)
      await holdWindow(caller)
      const deleted = store.instances.delete(caller.instanceId, 0)
      await untilWaiting(1)
      const accepted = call(caller)
      await untilWaiting(2)
      await client.query('commit')
      expect(await deleted).toBe(true)
      expect(await accepted).toBeNull()
      expect(await harness.execute('select 1 from messages')).toEqual([])
      expect(await store.admission.admit(caller.digest)).toBeNull()
    })

    test('the deletion waits for a call that came before: whoever ends the queue after it finds the message', async () => {
      const caller = await createCaller(0)
      await holdWindow(caller)
      const accepted = call(caller)
      await untilWaiting(1)
      const deleted = store.instances.delete(caller.instanceId, 0)
      await untilWaiting(2)
      await client.query('commit')
      expect(await accepted).not.toBeNull()
      expect(await deleted).toBe(true)
      expect(await queuedOf(caller)).toHaveLength(1)
    })

    test('the deletion leaves no window behind, whether there was one or not', async () => {
      for (const caller of [await createCaller(0), await createCaller(null)]) {
        expect(await store.instances.delete(caller.instanceId, 0)).toBe(true)
        expect(await callsOf(caller.instanceId)).toBeUndefined()
        expect(await call(caller)).toBeNull()
      }
    })
  })
})
