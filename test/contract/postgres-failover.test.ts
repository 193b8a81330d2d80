import { expect, inject, test } from 'vitest'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { startPostgres } from '../databases/postgres.ts'
import { queryPostgres } from '../databases/query-postgres.ts'
import { until } from '../until.ts'
import { newInstance } from './fixture.ts'
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
