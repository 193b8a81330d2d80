import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { until } from '../until.ts'
import { accept, attempt, createConnected, incoming, listReady } from './fixture.ts'
import { createPostgresHarness, type StoreHarness } from './harness.ts'

const MESSAGES = 300
/** Index entries read for one row looked for: the row itself, versions of it that are not vacuumed yet, others of its message. */
const ENTRIES_PER_LOOK = 20
/** The server adds its counts up about once a second. */
const COUNTED_WITHIN_MS = 10_000

let harness: StoreHarness
let store: Store

beforeEach(async () => {
  harness = await createPostgresHarness(inject('postgresUrl'))
  store = await harness.open()
  // A server that analyzes them in the middle would hide what this is about.
  const tables = await harness.execute(`select relname from pg_stat_user_tables`)
  for (const { relname } of tables) await harness.execute(`alter table ${relname} set (autovacuum_enabled = off)`)
})
afterEach(() => harness.dispose())

/** Indexes that were looked into at least once for every message. */
async function readIndexes(): Promise<{ name: string; looks: number; perLook: number }[]> {
  const rows = await harness.execute(`select indexrelname as name, idx_scan as looks, idx_tup_read as entries
    from pg_stat_user_indexes where idx_scan >= ${MESSAGES} order by 1`)
  return rows.map(({ name, looks, entries }) => ({
    name: String(name),
    looks: Number(looks),
    perLook: Math.round(Number(entries) / Number(looks)),
  }))
}

test('PostgreSQL finds a row among many of its instance at once, before it ever analyzed a table', async () => {
  const lease = await createConnected(store)
  const { instanceId } = lease
  const all = await Promise.all(Array.from({ length: MESSAGES }, () => accept(store, instanceId)))
  const content = new Uint8Array(50)
  for (const { id } of all) await store.messages.recordPrepared(lease, id, { address: 'a@s.whatsapp.net', content })
  for (const reached of ['sent', 'delivered', 'read'] as const) {
    for (const { whatsappId } of all) await store.messages.recordProgress(lease, whatsappId, reached, Date.now())
  }
  for (let index = 0; index < MESSAGES; index += 1) await store.events.recordIncoming(lease, incoming(), Date.now())
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

  const names = ['messages_pkey', 'messages_by_whatsapp_id', 'events_pkey', 'deliveries_pkey', 'attempts_pkey']
  const indexes = await until(
    'the server to add up',
    async () => {
      const found = await readIndexes()
      return names.every(name => found.some(index => index.name === name)) ? found : undefined
    },
    COUNTED_WITHIN_MS,
  )
  expect(indexes.filter(({ perLook }) => perLook > ENTRIES_PER_LOOK)).toEqual([])
})
