import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import type { MessageFilter } from '../../src/store/messages/messages.ts'
import type { Store } from '../../src/store/store.ts'
import { until } from '../until.ts'
import {
  accept,
  attempt,
  createConnected,
  createOwned,
  hex,
  incoming,
  listReady,
  newInstance,
  newMessage,
} from './fixture.ts'
import { createPostgresHarness, type StoreHarness } from './harness.ts'
import { newKey } from './promises/api-keys.ts'

const MESSAGES = 300
/**
 * Index entries read per row: the row, its versions that are not vacuumed yet, and other rows of its message. Dead entries stay while
 * another transaction runs, such as an analysis of the new database's catalogs: on a busy machine 64 were read. A query without the
 * right index reads the entries of all messages.
 */
const ENTRIES_PER_LOOK = MESSAGES / 2
const QUEUED = 30_000
/** With fewer rows, reading a whole table would not be noticed. */
const OTHER_INSTANCES = 40

let harness: StoreHarness
let store: Store

beforeEach(async () => {
  harness = await createPostgresHarness(inject('postgresUrl'))
  store = await harness.open({ ratePerMinute: 1_000_000 })
  // An automatic analysis during the test would hide the problem.
  const tables = await harness.execute(`select relname from pg_stat_user_tables`)
  for (const { relname } of tables) await harness.execute(`alter table ${relname} set (autovacuum_enabled = off)`)
})
afterEach(() => harness.dispose())

/** Indexes that were read at least once per message. */
async function readIndexes(): Promise<{ name: string; looks: number; perLook: number }[]> {
  const rows = await harness.execute(`select indexrelname as name, idx_scan as looks, idx_tup_read as entries
    from pg_stat_user_indexes where idx_scan >= ${MESSAGES} order by 1`)
  return rows.map(({ name, looks, entries }) => ({
    name: String(name),
    looks: Number(looks),
    perLook: Math.round(Number(entries) / Number(looks)),
  }))
}

test('PostgreSQL finds one row among many of its instance by index, even before it has analysed a table', async () => {
  const lease = await createConnected(store)
  const { instanceId } = lease
  // Planned while the tables are empty, as in a new installation that is busy at once.
  await listReady(store, instanceId)
  const all = await Promise.all(Array.from({ length: MESSAGES }, () => accept(store, instanceId)))
  const content = new Uint8Array(50)
  for (const { id } of all) await store.messages.recordPrepared(lease, id, { address: 'a@s.whatsapp.net', content })
  for (const reached of ['sent', 'delivered', 'read'] as const) {
    for (const { whatsappId } of all) await store.messages.recordProgress(lease, whatsappId, reached, Date.now())
  }
  for (let index = 0; index < MESSAGES; index += 1) await store.events.storeIncoming(lease, incoming(), Date.now())
  for (;;) {
    const ready = await listReady(store, instanceId)
    if (ready.length === 0) break
    for (const delivery of ready) {
      await store.deliveries.recordAttempt(lease, delivery, attempt(delivery), { kind: 'delivered' })
    }
  }
  for (const { id } of all) {
    await store.messages.find(instanceId, id)
    for (const event of await store.messages.listEvents(instanceId, id)) await store.events.find(instanceId, event.id)
  }

  const names = ['messages_pkey', 'messages_prepared', 'events_pkey', 'deliveries_pkey', 'attempts_pkey']
  expect(await readTooMuch(names)).toEqual([])
})

test('PostgreSQL finds one caller among many by index, and the rows that a message needs', async () => {
  for (let count = 0; count < OTHER_INSTANCES; count += 1) {
    const { instanceId } = await createConnected(store)
    await store.apiKeys.create(newKey(instanceId), 0)
  }
  const { tokenDigest } = newInstance()
  const lease = await createOwned(store, { tokenDigest })
  await store.connections.record(lease, { state: 'connected', reason: 'Connected.' }, Date.now())
  const key = newKey(lease.instanceId)
  await store.apiKeys.create(key, 0)
  const caller = hex(tokenDigest)
  await store.admission.admit(caller)
  for (let count = 0; count < MESSAGES; count += 1) {
    expect(await store.admission.admit(caller)).not.toBeNull()
    expect(await store.admission.admit(hex(key.digest))).not.toBeNull()
    expect(await store.messages.accept(newMessage(lease.instanceId), Date.now())).toMatchObject({ kind: 'accepted' })
  }
  const names = [
    'instances_token_digest_key',
    'api_keys_digest_key',
    'connections_pkey',
    'leases_pkey',
    'rate_windows_pkey',
  ]
  expect(await readTooMuch(names)).toEqual([])
})

test('PostgreSQL lists the messages of a queue that has just grown, before it has analysed the table again', async () => {
  const lease = await createConnected(store)
  const { instanceId } = lease
  const { id } = await accept(store, instanceId)
  await harness.execute('analyze messages')
  const added = `left(id, -6) || lpad(number::text, 6, '0')`
  await harness.execute(`insert into messages (instance_id, id, recipient, text, whatsapp_id, state, created_at)
    select instance_id, ${added}, recipient, text, ${added}, state, created_at
    from messages, generate_series(1, ${QUEUED}) as number`)
  expect((await store.messages.find(instanceId, id))?.state).toBe('queued')

  const search = 'nowhere to be found'
  // Each would end at the statement's time limit if every row were compared with every other.
  const list = async (filter: MessageFilter) =>
    (await store.messages.list(instanceId, { limit: 1 }, filter)).data.length
  expect(await list({ state: 'queued' })).toBe(1)
  expect(await list({ state: 'queued', to: '5511999999999' })).toBe(0)
  expect(await list({ search })).toBe(0)
  const lines = await store.conversations.listLines(instanceId, { limit: 1 }, { status: 'queued', search })
  expect(lines.data).toEqual([])
})

/** @param names indexes that must have been used */
async function readTooMuch(names: readonly string[]) {
  // A session flushes its counts when it ends, or after ten idle seconds.
  await store.close()
  const indexes = await until('the server to add up', async () => {
    const found = await readIndexes()
    return names.every(name => found.some(index => index.name === name)) ? found : undefined
  })
  return indexes.filter(({ perLook }) => perLook > ENTRIES_PER_LOOK)
}
