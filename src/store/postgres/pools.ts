import pg from 'pg'
import { StoreUnavailable } from '../errors.ts'
import type { StoreLogger } from '../logger.ts'

const CONNECT_TIMEOUT_MS = 5_000
/** Nothing here takes this long unless something is wrong. */
const STATEMENT_TIMEOUT_MS = 30_000
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 30_000
const INT8_OID = 20

/**
 * Every query reaches its rows through an index. Told so, the planner cannot settle on a scan while its statistics still
 * speak of a small table, and keep it in a prepared statement while the table grows.
 */
const PLANNER = 'set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off'

/** @param max how many connections at most */
export function createPool(url: string, max: number, logger: StoreLogger | undefined): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max,
    application_name: 'pombal',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    keepAlive: true,
    onConnect: async client => {
      await client.query(PLANNER)
    },
    types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
  })
  // Without a listener, a connection that breaks while nobody uses it would end the process.
  const broken = (error: Error) => logger?.warn({ error: error.message }, 'store.connection_lost')
  pool.on('error', broken)
  pool.on('connect', client => {
    client.on('error', broken)
  })
  return pool
}

/** bigint columns hold moments, counters and sequence numbers: all within what a number holds exactly. */
function parserOf(oid: number, format?: 'text' | 'binary'): unknown {
  return oid === INT8_OID && format !== 'binary' ? Number : pg.types.getTypeParser(oid, format as 'text')
}

/** What the driver throws by itself is about the connection; only the server's own errors are about a statement. */
export async function reach<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof pg.DatabaseError) throw error
    throw new StoreUnavailable('The database cannot be reached.', { cause: error })
  }
}
