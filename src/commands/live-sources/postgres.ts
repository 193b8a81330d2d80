import pg from 'pg'
import type { Row } from '../sessions/read-rows.ts'
import { CONNECT_WITHIN_MS, type Gateway, type LiveRows, MAX_SOURCE_BYTES, READ_WITHIN_MS } from './live-rows.ts'
import { tooLarge, unreadable } from './unreadable-source.ts'

/** Prisma, which Evolution uses, takes the schema from this parameter. */
const SCHEMA = 'schema'

/**
 * One query for the total size, one for the rows. An Evolution row without credentials names a session whose credentials are
 * in Redis.
 */
const QUERIES: Record<Gateway, { bytes: string; rows: string }> = {
  evolution: {
    bytes: 'select sum(octet_length(creds)) as bytes from "Session"',
    rows: `select i.id as session, 'creds' as key, s.creds as value, i.name, w.url as webhook from "Instance" i
      left join "Session" s on s."sessionId" = i.id
      left join "Webhook" w on w."instanceId" = i.id and w.enabled is not false order by i.name`,
  },
  waha: {
    bytes: 'select sum(octet_length(value::text)) as bytes from waha_auth',
    rows: 'select session_id as session, key, value::text as value from waha_auth order by session_id',
  },
}

const UNDEFINED_TABLE = '42P01'
const SESSION_DATABASES =
  '. WAHA may keep each session in a database of its own, waha_{engine}_{session}: name that database in the address.'

/** PostgreSQL hides the kind of other users' processes. Those of the server itself have no user. */
const OTHER_CLIENTS = `select count(*) as clients from pg_stat_activity
  where datname = current_database() and usename is not null and pid <> pg_backend_pid()
  and coalesce(backend_type, 'client backend') = 'client backend'`

/** Reads everything as of one moment, in a transaction that cannot write. @throws UnreadableSource */
export async function readPostgres(gateway: Gateway, url: URL): Promise<LiveRows> {
  const address = new URL(url)
  const schema = address.searchParams.get(SCHEMA)
  address.searchParams.delete(SCHEMA)
  const client = new pg.Client({
    connectionString: address.href,
    application_name: 'pombal import',
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    query_timeout: READ_WITHIN_MS,
  })
  // A broken connection also fails its query.
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query('begin transaction isolation level repeatable read, read only')
    if (schema !== null) await client.query(`select set_config('search_path', $1, true)`, [pg.escapeIdentifier(schema)])
    const { bytes, rows } = QUERIES[gateway]
    const size = await client.query<{ bytes: string | null }>(bytes)
    if (Number(size.rows[0]?.bytes) > MAX_SOURCE_BYTES) throw tooLarge(url)
    const found = await client.query<Row>(rows)
    const others = await client.query<{ clients: string }>(OTHER_CLIENTS)
    return { rows: found.rows, otherClients: Number(others.rows[0]?.clients) }
  } catch (error) {
    const hint = gateway === 'waha' && (error as { code?: string }).code === UNDEFINED_TABLE ? SESSION_DATABASES : ''
    throw unreadable(url, error, hint)
  } finally {
    await client.end().catch(() => undefined)
  }
}
