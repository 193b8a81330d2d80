import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { instancesTables } from '../../src/store/engine/migrations/0001-instances.ts'
import { messagesTables } from '../../src/store/engine/migrations/0002-messages.ts'
import { healthTables } from '../../src/store/engine/migrations/0007-health.ts'
import { indexOrder } from '../../src/store/engine/migrations/0009-index-order.ts'
import { FLAVOURS } from '../../src/store/engine/migrations/flavour.ts'
import { createDatabase } from '../databases/database.ts'
import { until } from '../until.ts'

/** Migrations while other nodes are running. */

test('filling contacts does not lock the connections', async () => {
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
