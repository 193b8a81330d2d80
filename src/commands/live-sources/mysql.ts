import { createConnection } from 'mysql2/promise'
import type { Row } from '../sessions/read-rows.ts'
import { CONNECT_WITHIN_MS, type LiveRows, MAX_SOURCE_BYTES, READ_WITHIN_MS } from './live-rows.ts'
import { tooLarge, unreadable } from './unreadable-source.ts'

const DEFAULT_PORT = 3306

const BYTES = 'select sum(length(creds)) as bytes from Session'
const ROWS = `select i.id as session, 'creds' as \`key\`, s.creds as value, i.name, w.url as webhook from Instance i
  left join Session s on s.sessionId = i.id
  left join Webhook w on w.instanceId = i.id and w.enabled is not false order by i.name`
/** Without the privilege PROCESS, only clients of the same user are counted: Evolution, if its own URL was given. */
const OTHER_CLIENTS = `select count(*) as clients from information_schema.processlist
  where db = database() and id <> connection_id()`

/** Reads Evolution's rows as of one moment, in a transaction that cannot write. @throws UnreadableSource */
export async function readMysql(url: URL): Promise<LiveRows> {
  const connection = await createConnection({
    host: url.hostname,
    port: Number(url.port || DEFAULT_PORT),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)),
    connectTimeout: CONNECT_WITHIN_MS,
    ...tlsOf(url),
  }).catch(error => {
    throw unreadable(url, error)
  })
  const read = async (sql: string) => {
    const [rows] = await connection.query({ sql, timeout: READ_WITHIN_MS })
    return rows as Record<string, unknown>[]
  }
  try {
    await connection.query('start transaction with consistent snapshot, read only')
    const [size] = await read(BYTES)
    if (Number(size?.['bytes']) > MAX_SOURCE_BYTES) throw tooLarge(url)
    const rows = (await read(ROWS)) as unknown as Row[]
    const [others] = await read(OTHER_CLIENTS)
    return { rows, otherClients: Number(others?.['clients']) }
  } catch (error) {
    throw unreadable(url, error)
  } finally {
    connection.destroy()
  }
}

/** Reads Prisma's parameter `sslaccept`. */
function tlsOf(url: URL): { ssl?: { rejectUnauthorized: boolean } } {
  const accepts = url.searchParams.get('sslaccept')
  return accepts === null ? {} : { ssl: { rejectUnauthorized: accepts !== 'accept_invalid_certs' } }
}
