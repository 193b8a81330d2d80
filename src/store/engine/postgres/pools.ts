import pg from 'pg'
import { StoreUnavailable } from '../../errors.ts'
import type { StoreLogger } from '../logger.ts'

const CONNECT_TIMEOUT_MS = 5_000
/** No statement should take this long. Shorter than a lease. */
const STATEMENT_TIMEOUT_MS = 10_000
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000
/** The client-side timeout, for a server that no longer answers. */
const ANSWER_TIMEOUT_MS = 12_000
/** How often the server checks during a long statement whether the client is still connected. */
const CONNECTION_CHECK_MS = 10_000
/**
 * How long a write waits for a lock of another node, which may be frozen. Longer than PostgreSQL's `deadlock_timeout` of 1 s, so
 * that a deadlock is reported as such. A migration gives up after the same time, and tries again.
 */
const LOCK_TIMEOUT_MS = 2_000
/** The timeout of the dedicated connections, whose statements are short. */
const CLIENT_ANSWER_TIMEOUT_MS = 5_000
const INT8_OID = 20

/**
 * Every query reaches few rows through an index. These settings keep the planner from choosing a scan while its
 * statistics still describe a small table, and from starting workers or the JIT compiler for a large table. Since the
 * best plan does not depend on the parameters, each statement is planned once.
 */
const PLANNER_SETTINGS = `
  set enable_seqscan = off;
  set enable_hashjoin = off;
  set enable_mergejoin = off;
  set max_parallel_workers_per_gather = 0;
  set jit = off;
  set plan_cache_mode = force_generic_plan`
/** A commit is then on disk when it returns, whatever the role or the database sets. `local`, `remote_apply` and the like remain. */
const DURABLE_COMMITS = `select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'`
/** Set by statements instead of startup parameters, because PgBouncer refuses unknown startup parameters. */
const SETTINGS = `
  set statement_timeout = ${STATEMENT_TIMEOUT_MS};
  set idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_TIMEOUT_MS};
  ${PLANNER_SETTINGS}`
/** The lock of the migrations belongs to a session, outside of any transaction. Longer than the pool keeps an idle connection. */
const IDLE_SESSION_TIMEOUT_MS = 30_000
const MIGRATION_SETTINGS = `
  ${DURABLE_COMMITS};
  set lock_timeout = ${LOCK_TIMEOUT_MS};
  set statement_timeout = 0;
  set idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_TIMEOUT_MS};
  set idle_session_timeout = ${IDLE_SESSION_TIMEOUT_MS}`

/** @param max the maximum number of connections */
export function createReadingPool(url: string, max: number, logger: StoreLogger | undefined): pg.Pool {
  return createPoolWithSettings(url, logger, SETTINGS, { max })
}

/** A pool for writes: statements are sent without waiting for the results of earlier ones, and waiting for a lock has a timeout. */
export function createWritingPool(url: string, max: number, logger: StoreLogger | undefined): pg.Pool {
  const settings = `${SETTINGS}; ${DURABLE_COMMITS}; set lock_timeout = ${LOCK_TIMEOUT_MS}`
  return createPoolWithSettings(url, logger, settings, { max, pipeline: true })
}

/**
 * A pool for migrations: statements have no timeout, but waiting for a lock has one (`retryUntilLocked`). The server ends the
 * session of a process that is frozen or gone, which would keep its locks, even in the middle of a long statement.
 */
export function createMigrationPool(url: string, max: number, logger: StoreLogger | undefined): pg.Pool {
  return createPoolWith(url, logger, {
    max,
    onConnect: async client => {
      await client.query(MIGRATION_SETTINGS)
      // Servers on some systems, such as Windows, refuse it.
      await client.query(`set client_connection_check_interval = ${CONNECTION_CHECK_MS}`).catch(ignoreRefusal)
    },
  })
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof pg.DatabaseError)) throw error
}

/** A dedicated connection, for features that belong to a session. */
export function createClient(url: string): pg.Client {
  return new pg.Client({ ...connectionOf(url), query_timeout: CLIENT_ANSWER_TIMEOUT_MS })
}

function createPoolWithSettings(url: string, logger: StoreLogger | undefined, settings: string, config: pg.PoolConfig) {
  return createPoolWith(url, logger, {
    ...config,
    query_timeout: ANSWER_TIMEOUT_MS,
    onConnect: async client => {
      await client.query(settings)
      await refuseStandby(client)
    },
  })
}

/**
 * After a failover, the address may still lead to the demoted primary. As a standby it would answer reads with old data. A server
 * must restart to become a standby, which ends its connections, so it is enough to check new ones.
 */
async function refuseStandby(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ is_standby: boolean }>('select pg_is_in_recovery() as is_standby')
  if (rows[0]?.is_standby) throw new Error('The server is a standby, not the primary.')
}

function createPoolWith(url: string, logger: StoreLogger | undefined, config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool({
    ...config,
    ...connectionOf(url),
  })
  // Without a listener, an error on an idle connection would end the process.
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

/** bigint columns hold times, counters and sequence numbers, which all fit into a JavaScript number exactly. */
function parserOf(oid: number, format?: 'text' | 'binary'): unknown {
  return oid === INT8_OID && format !== 'binary' ? Number : pg.types.getTypeParser(oid, format as 'text')
}

/**
 * Rethrows errors of the server, which concern a statement. Errors of the driver concern the connection.
 * @throws StoreUnavailable for an error of the driver
 */
export async function reach<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof pg.DatabaseError) throw error
    throw new StoreUnavailable('The database cannot be reached.', { cause: error })
  }
}
