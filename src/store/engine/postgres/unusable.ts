import pg from 'pg'
import { StoreUnavailable, StoreUnusable } from '../../errors.ts'

/** What a node takes of the database, the connection for hints included (`postgres-backend.ts`, `shared-hints.ts`). */
const CONNECTIONS_OF_A_NODE = 9
/** The oldest one that was tried. */
const OLDEST_VERSION = 15
/** Node's codes of certificates that it does not trust (its manual, "TLS", X509 certificate error codes). */
const CERTIFICATE_CODES = /CERT|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|HOSTNAME_MISMATCH/

interface Target {
  /** With the port. */
  host: string
  hostname: string
  user: string
  database: string
}

/** PostgreSQL's error at a start as a sentence for the operator, without the password; any other error as it is. */
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

/** SQLSTATE → what to do about it. */
const REFUSALS: Readonly<Record<string, (target: Target, message: string) => string>> = {
  '28P01': ({ host, user }) =>
    `PostgreSQL at ${host} refuses the password of user "${user}": correct it in DATABASE_URL.`,
  '28000': ({ host }, message) =>
    `PostgreSQL at ${host} refuses the login (${message}): the user must exist and pg_hba.conf must let it in; where that asks for encryption, add "?sslmode=require" to DATABASE_URL.`,
  '3D000': ({ host, database }) =>
    `PostgreSQL at ${host} has no database "${database}": create it (createdb ${database}), or correct DATABASE_URL.`,
  '42501': ({ host, user, database }, message) =>
    `PostgreSQL at ${host} does not let user "${user}" work in database "${database}" (${message}): run there: grant usage, create on schema public to "${user}".`,
  '3F000': ({ host, database }) =>
    `PostgreSQL at ${host} has no schema "public" in database "${database}": create it, or let the user's search_path name another one.`,
  '25006': ({ host }) =>
    `PostgreSQL at ${host} only reads: it is a standby, or default_transaction_read_only is on. Give DATABASE_URL the address of the primary.`,
  '53300': ({ host }) =>
    `PostgreSQL at ${host} has no connection left: a node needs ${CONNECTIONS_OF_A_NODE}. Raise max_connections.`,
  '57P03': ({ host }) => `PostgreSQL at ${host} is starting or stopping: start Pombal again when it runs.`,
  '08P01': ({ host, user, database }, message) =>
    `The pooler at ${host} refuses user "${user}" or database "${database}": ${message}.`,
}

function unreachable(cause: unknown, { host, hostname }: Target): string {
  const { code = '', message = '' } = (cause ?? {}) as NodeJS.ErrnoException
  if (message.includes('does not support SSL')) {
    return `PostgreSQL at ${host} refuses TLS, which DATABASE_URL asks for: switch it on there, or take sslmode out of DATABASE_URL.`
  }
  if (CERTIFICATE_CODES.test(code)) {
    return `PostgreSQL at ${host} shows a certificate that is not trusted (${code}): add "sslrootcert=/path/to/ca.crt" to DATABASE_URL, with a host name that the certificate holds.`
  }
  const at = `PostgreSQL at ${host} cannot be reached`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return `${at}: the name ${hostname} is not known (${code}). Correct it in DATABASE_URL.`
  }
  if (code === 'ECONNREFUSED') {
    return `${at}: nothing listens there (${code}). Start it, or correct host and port in DATABASE_URL.`
  }
  if (code === '' && /timeout/i.test(message)) {
    return `${at}: it does not answer. Check address and firewall; behind a pooler, that its pool has ${CONNECTIONS_OF_A_NODE} connections for each node.`
  }
  return `${at}: ${message || 'the connection ended'}.`
}
