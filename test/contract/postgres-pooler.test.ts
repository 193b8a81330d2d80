import pg from 'pg'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import { NeedsSessions } from '../../src/store/errors.ts'
import { startTransactionPooler } from '../databases/transaction-pooler.ts'
import { createPostgresHarness, type StoreHarness } from './harness.ts'

let harness: StoreHarness
let pooler: Awaited<ReturnType<typeof startTransactionPooler>>

beforeEach(async () => {
  harness = await createPostgresHarness(inject('postgresUrl'))
  pooler = await startTransactionPooler(harness.options.databaseUrl ?? '')
})
afterEach(async () => {
  pooler.close()
  await harness.dispose()
})

test('the pooler of this test sends a client’s transactions to different sessions', async () => {
  const [one, other] = [new pg.Client(pooler.url), new pg.Client(pooler.url)]
  await Promise.all([one.connect(), other.connect()])
  const sessionOf = async (client: pg.Client) => (await client.query('select pg_backend_pid() as pid')).rows[0].pid
  const first = await sessionOf(one)
  await other.query('begin')
  expect(await sessionOf(other)).toBe(first)
  expect(await sessionOf(one)).not.toBe(first)
  await Promise.all([one.end(), other.end()])
})

test('a pooler in transaction mode is refused at start-up with an explanation, before anything is written', async () => {
  await expect(harness.open({ databaseUrl: pooler.url })).rejects.toThrow(NeedsSessions)
  await expect(harness.open({ databaseUrl: pooler.url })).rejects.toThrow(/pool in session mode/)
  expect(await harness.execute("select 1 from pg_tables where schemaname = 'public'")).toEqual([])
})
