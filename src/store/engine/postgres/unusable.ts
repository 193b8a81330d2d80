import pg from 'pg'
import { StoreUnavailable, StoreUnusable } from '../../errors.ts'

/** Connections of one node, including the one for hints (`postgres-backend.ts`, `shared-hints.ts`). */
const CONNECTIONS_OF_A_NODE = 14
/** The oldest version that was tested. */
export const OLDEST_VERSION = 15
/** Node's error codes for untrusted certificates (Node manual, "TLS", "X509 certificate error codes"). */
const CERTIFICATE_CODES = /CERT|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|HOSTNAME_MISMATCH/

interface Target {
  /** Includes the port. */
  host: string
  hostname: string
  user: string
  database: string
}

/** Explains a PostgreSQL error at start-up to the operator, without the password. Returns any other error unchanged. */
export function explained(error: unknown, databaseUrl: string): unknown {
  if (error instanceof StoreUnusable) return error
  const target = targetOf(databaseUrl)
  if (error instanceof StoreUnavailable) {
    return new StoreUnavailable(unreachable(error.cause, target), { cause: error.cause })
  }
  if (!(error instanceof pg.DatabaseError)) return error
  const sentence = REFUSALS[error.code ?? '']?.(target, error.message)
  return sentence === undefined ? error : new StoreUnusable(`${sentence} (${error.code})`, { cause: error })
}

/** @throws StoreUnusable */
export async function refuseOldVersion(pool: pg.Pool, databaseUrl: string): Promise<void> {
  const { rows } = await pool.query<{ server_version_num: string }>('show server_version_num')
  const version = Math.floor(Number(rows[0]?.server_version_num) / 10_000)
  if (version >= OLDEST_VERSION) return
  throw new StoreUnusable(
    `PostgreSQL at ${targetOf(databaseUrl).host} is version ${version}: Pombal needs ${OLDEST_VERSION} or later. Nothing was changed.`,
  )
}

/** In any other encoding PostgreSQL refuses or garbles some characters. @throws StoreUnusable */
export async function refuseOtherEncoding(pool: pg.Pool, databaseUrl: string): Promise<void> {
  const { rows } = await pool.query<{ server_encoding: string }>('show server_encoding')
  const encoding = rows[0]?.server_encoding
  if (encoding === 'UTF8') return
  const { host, database } = targetOf(databaseUrl)
  throw new StoreUnusable(
    `The database "${database}" of PostgreSQL at ${host} has the encoding ${encoding}. Create one with the encoding UTF8 (createdb --encoding=UTF8 --template=template0 NAME) and set DATABASE_URL to it. Nothing was changed.`,
  )
}

/**
 * Finds out without a write whether a start could write.
 * @param needsTables whether it would create tables
 * @throws StoreUnusable
 */
export async function refuseUnwritable(pool: pg.Pool, databaseUrl: string, needsTables: boolean): Promise<void> {
  const { rows } = await pool.query<{ is_read_only: boolean; schema: string | null; may_create: boolean | null }>(
    `select pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean as is_read_only,
      current_schema() as schema, has_schema_privilege(current_schema(), 'create') as may_create`,
  )
  const { is_read_only: isReadOnly, schema, may_create: mayCreate } = rows[0]!
  const refuse = (code: string, message: string) => {
    throw new StoreUnusable(`${REFUSALS[code]!(targetOf(databaseUrl), message)} (${code})`)
  }
  if (isReadOnly) refuse('25006', 'read-only')
  if (!needsTables) return
  if (schema === null) refuse('3F000', 'no schema')
  if (!mayCreate) refuse('42501', `permission denied for schema ${schema}`)
}

function targetOf(databaseUrl: string): Target {
  const { hostname, port, username, pathname } = new URL(databaseUrl)
  const user = decodeURIComponent(username)
  return {
    host: `${hostname || 'localhost'}:${port || '5432'}`,
    hostname: hostname || 'localhost',
    user,
    database: decodeURIComponent(pathname.slice(1)) || user,
  }
}

/** SQLSTATE → explanation and remedy. */
const REFUSALS: Readonly<Record<string, (target: Target, message: string) => string>> = {
  '28P01': ({ host, user }) =>
    `PostgreSQL at ${host} refuses the password of user "${user}". Correct it in DATABASE_URL.`,
  '28000': ({ host }, message) =>
    `PostgreSQL at ${host} refuses the login (${message}). The user must exist and pg_hba.conf must allow it; if that requires encryption, add "?sslmode=require" to DATABASE_URL.`,
  '3D000': ({ host, database }) =>
    `PostgreSQL at ${host} has no database "${database}". Create it (createdb ${database}) or correct DATABASE_URL.`,
  '42501': ({ host, user, database }, message) =>
    `PostgreSQL at ${host} does not let user "${user}" work in database "${database}" (${message}). ${
      /for schema|for database/.test(message)
        ? `Run there: grant usage, create on schema public to "${user}".`
        : `Its tables belong to another user, as after a restore: make "${user}" their owner, or restore the dump again with pg_restore --no-owner --role=${user}.`
    }`,
  '3F000': ({ host, database }) =>
    `PostgreSQL at ${host} has no schema "public" in database "${database}". Create it, or set the user's search_path to another schema.`,
  '25006': ({ host }) =>
    `PostgreSQL at ${host} is read-only: it is a standby, or default_transaction_read_only is on. Set DATABASE_URL to the address of the primary.`,
  '53300': ({ host }) =>
    `PostgreSQL at ${host} has no connection left. A node needs ${CONNECTIONS_OF_A_NODE}; raise max_connections.`,
  '53100': ({ host }) => `PostgreSQL at ${host} has no disk space left. Free some space there.`,
  '57P03': ({ host }) => `PostgreSQL at ${host} is starting or stopping. Start Pombal again when it runs.`,
  '08P01': ({ host, user, database }, message) =>
    `The pooler at ${host} refuses user "${user}" or database "${database}": ${message}.`,
}

function unreachable(cause: unknown, { host, hostname }: Target): string {
  const { code = '', message = '' } = (cause ?? {}) as NodeJS.ErrnoException
  if (message.includes('does not support SSL')) {
    return `PostgreSQL at ${host} refuses TLS, which DATABASE_URL requires. Enable it there, or remove sslmode from DATABASE_URL.`
  }
  if (message.includes('protocol version')) {
    return `PostgreSQL at ${host} offers only versions of TLS before 1.2. Raise ssl_max_protocol_version there.`
  }
  if (CERTIFICATE_CODES.test(code)) {
    return `PostgreSQL at ${host} has a certificate that is not trusted (${code}). Add "sslrootcert=/path/to/ca.crt" to DATABASE_URL, and use a host name that the certificate contains.`
  }
  const at = `PostgreSQL at ${host} cannot be reached`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return `${at}: the host name ${hostname} is unknown (${code}). Correct it in DATABASE_URL.`
  }
  if (code === 'ECONNREFUSED') {
    return `${at}: nothing listens there (${code}). Start it, or correct host and port in DATABASE_URL.`
  }
  if (code === '' && /timeout/i.test(message)) {
    return `${at}: it does not answer. Check the address and the firewall; behind a pooler, check that its pool has ${CONNECTIONS_OF_A_NODE} connections for each node.`
  }
  return `${at}: ${message || 'the connection ended'}.`
}
