import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { FLAVOURS } from '../../src/store/engine/migrations/flavour.ts'
import { instancesTables } from '../../src/store/engine/migrations/steps/0001-instances.ts'
import { messagesTables } from '../../src/store/engine/migrations/steps/0002-messages.ts'
import { eventsTables } from '../../src/store/engine/migrations/steps/0003-events.ts'
import { healthTables } from '../../src/store/engine/migrations/steps/0007-health.ts'
import { indexOrder } from '../../src/store/engine/migrations/steps/0009-index-order.ts'
import { eventNumbers } from '../../src/store/engine/migrations/steps/0030-event-numbers.ts'
import { createMigrationPool } from '../../src/store/engine/postgres/pools.ts'
import { createDatabase } from '../databases/database.ts'
import { until } from '../until.ts'
import { createConnected, OWNER } from './fixture.ts'
import { createPostgresHarness } from './harness.ts'

/** Migrations while other nodes are running. */

test('filling the table contacts does not lock the table connections', async () => {
  const database = await createDatabase('postgres', inject('postgresUrl'))
  const client = new pg.Client({ connectionString: database.url! })
  try {
    await client.connect()
    const before = [instancesTables, messagesTables].flatMap(tables => tables(FLAVOURS.postgres))
    for (const statement of before) await client.query(statement)
    await client.query('begin')
    const statements = healthTables(FLAVOURS.postgres)
    const fills = statements.findIndex(statement => statement.startsWith('insert into contacts'))
    for (const statement of statements.slice(0, fills + 1)) await client.query(statement)
    const held = await client.query(
      `select relation::regclass::text as name from pg_locks
       where pid = pg_backend_pid() and locktype = 'relation' and mode <> 'AccessShareLock'`,
    )
    expect(held.rows).toContainEqual({ name: 'contacts' })
    expect(held.rows).not.toContainEqual({ name: 'connections' })
  } finally {
    await client.end()
    await database.dispose()
  }
})

test('a transaction that reads and then writes messages does not deadlock with the migration of their indexes', async () => {
  const database = await createDatabase('postgres', inject('postgresUrl'))
  const [node, migration] = [1, 2].map(() => new pg.Client({ connectionString: database.url! }))
  try {
    await Promise.all([node!.connect(), migration!.connect()])
    for (const statement of messagesTables(FLAVOURS.postgres)) await migration!.query(statement)
    await node!.query('begin')
    await node!.query('select id from messages')
    await migration!.query('begin')
    const changed = Promise.all(indexOrder(FLAVOURS.postgres).map(statement => migration!.query(statement)))
    await until('the migration to wait', async () => {
      const { rows } = await node!.query("select 1 from pg_locks where not granted and relation = 'messages'::regclass")
      return rows.length > 0
    })
    await node!.query("update messages set state = 'sent'")
    await node!.query('commit')
    await changed
    await migration!.query('commit')
  } finally {
    await Promise.all([node!.end(), migration!.end()])
    await database.dispose()
  }
})

test('events are numbered by instance, including those that a node of the previous version inserts', async () => {
  const database = await createDatabase('postgres', inject('postgresUrl'))
  const [migration, node] = [1, 2].map(() => new pg.Client({ connectionString: database.url! }))
  const insert = (client: pg.Client, instanceId: string, ids: readonly string[]) =>
    client.query(
      `insert into events (instance_id, id, kind, timestamp, created_at, body)
       select $1, id, 'message.received', 1, 2, id from unnest($2::text[]) as ids(id)`,
      [instanceId, ids],
    )
  try {
    await Promise.all([migration!.connect(), node!.connect()])
    for (const tables of [instancesTables, eventsTables])
      for (const statement of tables(FLAVOURS.postgres)) await migration!.query(statement)
    for (const id of ['inst_a', 'inst_b'])
      await node!.query(
        `insert into instances (id, name, kind, webhook_secret, created_at) values ('${id}', '', 'whatsapp', '', 1)`,
      )
    await insert(node!, 'inst_b', ['evt_2', 'evt_1'])
    await insert(node!, 'inst_a', ['evt_3'])
    await migration!.query('begin')
    for (const statement of eventNumbers(FLAVOURS.postgres)) await migration!.query(statement)
    const waiting = insert(node!, 'inst_b', ['evt_9', 'evt_8', 'evt_4'])
    await migration!.query('commit')
    await waiting
    await migration!.query(`insert into event_feeds values ('inst_a', 7)`)
    await insert(node!, 'inst_a', ['evt_5'])
    const { rows } = await node!.query('select instance_id, id, seq from events order by instance_id, seq')
    expect(rows.map(row => `${row.instance_id} ${row.id} ${row.seq}`)).toEqual([
      'inst_a evt_3 1',
      'inst_a evt_5 8',
      'inst_b evt_1 1',
      'inst_b evt_2 2',
      'inst_b evt_9 3',
      'inst_b evt_8 4',
      'inst_b evt_4 5',
    ])
  } finally {
    await Promise.all([migration!.end(), node!.end()])
    await database.dispose()
  }
})

test('a migration is not stopped by a statement_timeout of the database, and a frozen one keeps its locks for 10 s', async () => {
  const database = await createDatabase('postgres', inject('postgresUrl'))
  const pool = createMigrationPool(database.url!, 1, undefined)
  try {
    await database.run(`alter database ${new URL(database.url!).pathname.slice(1)} set statement_timeout = '200ms'`, '')
    await pool.query('select pg_sleep(0.5)')
    const settings = [
      'idle_in_transaction_session_timeout',
      'idle_session_timeout',
      'client_connection_check_interval',
      'lock_timeout',
    ]
    const { rows } = await pool.query('select name, setting from pg_settings where name = any($1)', [settings])
    expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual({
      idle_in_transaction_session_timeout: '10000',
      idle_session_timeout: '30000',
      client_connection_check_interval: '10000',
      lock_timeout: '2000',
    })
  } finally {
    await pool.end()
    await database.dispose()
  }
})

test('a step that waits for a lock keeps neither the locks nor the work of the steps before it', async () => {
  const harness = await createPostgresHarness(inject('postgresUrl'))
  const holder = new pg.Client({ connectionString: harness.options.databaseUrl! })
  try {
    const node = await harness.open()
    const { instanceId } = await createConnected(node)
    for (const statement of [
      "delete from kysely_migration where name >= '0144'",
      'drop index connections_phone, media_fetches_first, deliveries_redelivery, deliveries_retried, finished_deliveries_endpoint',
      'create index media_fetches_due on media_fetches (due_at)',
      'alter table accounts drop invited_by',
      'alter table handouts drop created_by',
      'alter table messages drop traceparent',
      'alter table events drop traceparent',
    ])
      await harness.execute(statement)
    await holder.connect()
    await holder.query('begin; lock table finished_deliveries in row exclusive mode')
    const updated = harness.open()
    await until('the last step to wait', async () => {
      const found = "select 1 from pg_locks where not granted and relation = 'finished_deliveries'::regclass"
      return (await harness.execute(found)).length > 0
    })
    const [last] = await harness.execute('select max(name) as name from kysely_migration')
    expect(last).toEqual({ name: '0152-scheduled-commands' })
    expect((await node.leases.renew(OWNER)).map(lease => lease.instanceId)).toEqual([instanceId])
    await holder.query('commit')
    await updated
  } finally {
    await holder.end()
    await harness.dispose()
  }
})
