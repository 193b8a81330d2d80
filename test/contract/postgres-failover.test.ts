import { expect, inject, test } from 'vitest'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { startPostgres } from '../databases/postgres.ts'
import { queryPostgres } from '../databases/query-postgres.ts'
import { until } from '../until.ts'
import { createConnected, newInstance, newMessage } from './fixture.ts'
import { createPostgresHarness } from './harness.ts'

test('a node reads nothing from a demoted server, and continues once it reaches a primary', async () => {
  await using cleanUp = new AsyncDisposableStack()
  const server = await startPostgres()
  cleanUp.defer(() => server.stop())
  const harness = await createPostgresHarness(server.url)
  cleanUp.defer(() => harness.dispose())
  const store = await harness.open()
  const { id } = await store.instances.create(newInstance(), 0)
  await queryPostgres(
    server.url,
    `do $$ begin execute format('copy (select) to %L', current_setting('data_directory') || '/standby.signal'); end $$`,
  )
  await server.crash()
  await server.restart()
  await expect(store.instances.find(id)).rejects.toThrow(StoreUnavailable)
  await expect(store.instances.create(newInstance(), 0)).rejects.toThrow(StoreUnavailable)
  await queryPostgres(server.url, 'select pg_promote()')
  expect(await store.instances.find(id)).toMatchObject({ id })
  await store.instances.create(newInstance(), 0)
})

test('a write that a read-only server refuses closes its connection, since a new one may reach the primary', async () => {
  await using cleanUp = new AsyncDisposableStack()
  const serverUrl = inject('postgresUrl')
  const harness = await createPostgresHarness(serverUrl)
  cleanUp.defer(() => harness.dispose())
  const store = await harness.open()
  const create = () => store.instances.create(newInstance(), 0)
  const database = new URL(harness.options.databaseUrl!).pathname.slice(1)
  const setReadOnly = (value: 'on' | 'off') =>
    queryPostgres(serverUrl, `alter database ${database} set default_transaction_read_only = ${value}`)
  await setReadOnly('on')
  await queryPostgres(serverUrl, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}'`)
  await until('a connection that is read-only', async () => {
    const error = await create().catch(error => error)
    return String(error.cause?.message).includes('read-only')
  })
  await setReadOnly('off')
  expect(await create()).toMatchObject({ state: 'unlinked' })
})

test.each([
  { set: 'off', used: 'on' },
  { set: 'local', used: 'local' },
])('on a database with synchronous_commit = $set, a message is accepted with $used', async ({ set, used }) => {
  await using cleanUp = new AsyncDisposableStack()
  const serverUrl = inject('postgresUrl')
  const harness = await createPostgresHarness(serverUrl)
  cleanUp.defer(() => harness.dispose())
  const database = new URL(harness.options.databaseUrl!).pathname.slice(1)
  await queryPostgres(serverUrl, `alter database ${database} set synchronous_commit = ${set}`)
  const store = await harness.open()
  const { instanceId } = await createConnected(store)
  await harness.execute('create table seen (value text)')
  await harness.execute(`create function see() returns trigger language plpgsql as
    $$ begin insert into seen values (current_setting('synchronous_commit')); return null; end $$`)
  // Deferred, so that it runs at the commit.
  await harness.execute(`create constraint trigger see after insert on messages deferrable initially deferred
    for each row execute function see()`)
  expect((await store.messages.accept(newMessage(instanceId), 0)).kind).toBe('accepted')
  expect(await harness.execute('select value from seen')).toEqual([{ value: used }])
})
