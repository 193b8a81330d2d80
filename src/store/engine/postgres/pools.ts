import pg from 'pg'
import { StoreUnavailable } from '../../errors.ts'
import type { StoreLogger } from '../logger.ts'

const CONNECT_TIMEOUT_MS = 5_000
/** Nothing here takes this long unless something is wrong; shorter than a lease. */
const STATEMENT_TIMEOUT_MS = 10_000
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000
/** The same on our side, for a server that does not answer any more. */
const ANSWER_TIMEOUT_MS = 12_000
/** How long a migration makes everybody wait behind it, at a time. */
const LOCK_TIMEOUT_MS = 2_000
/** What goes over a connection of its own is answered at once, or never. */
const CLIENT_ANSWER_TIMEOUT_MS = 5_000
const INT8_OID = 20

/**
 * Every query reaches few rows through an index. Told so, the planner cannot settle on a scan while its statistics still
 * speak of a small table, nor start workers or a compiler for a large one; and since no values change that, each
 * statement is planned once.
 */
const PLANNER_SETTINGS = `
  set enable_seqscan = off;
  set enable_hashjoin = off;
  set enable_mergejoin = off;
  set max_parallel_workers_per_gather = 0;
  set jit = off;
  set plan_cache_mode = force_generic_plan`
/** By statements, and not as parameters of the login: PgBouncer refuses a login with parameters that it does not know. */
const SETTINGS = `
  set statement_timeout = ${STATEMENT_TIMEOUT_MS};
  set idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_TIMEOUT_MS};
  ${PLANNER_SETTINGS}`

/**
 * @param max how many connections at most
 * @param pipeline whether statements are sent without waiting for the answers to those before them
 */
export function createPool(url: string, max: number, logger: StoreLogger | undefined, pipeline = false): pg.Pool {
  return createPoolWith(url, logger, {
    max,
    pipeline,
    query_timeout: ANSWER_TIMEOUT_MS,
    onConnect: async client => {
      await client.query(SETTINGS)
    },
  })
}

/** For migrations: a change may take any time, but not wait for its locks for long (`retryUntilLocked`). */
export function createMigrationPool(url: string, max: number, logger: StoreLogger | undefined): pg.Pool {
  return createPoolWith(url, logger, {
    max,
    onConnect: async client => {
      await client.query(`set lock_timeout = ${LOCK_TIMEOUT_MS}`)
    },
  })
}

/** One connection, for what belongs to a session. */
export function createClient(url: string): pg.Client {
  return new pg.Client({ ...connectionOf(url), query_timeout: CLIENT_ANSWER_TIMEOUT_MS })
}

function createPoolWith(url: string, logger: StoreLogger | undefined, config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool({
    ...config,
    ...connectionOf(url),
  })
  // Without a listener, a connection that breaks while nobody uses it would end the process.
  const broken = (error: Error) => logger?.warn({ error: error.message }, 'store.connection_lost')
  pool.on('error', broken)
  pool.on('connect', client => {
    client.on('error', broken)
  })
  return pool
}

function connectionOf(url: string) {
  return {
    connectionString: url,
    application_name: 'pombal',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
  }
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
