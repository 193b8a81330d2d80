// Reads sessions from the live databases of other programs. Nothing is ever written there.
import { BadSettings } from '../../config.ts'
import { Environment } from '../../environment.ts'
import { commandSetting } from '../for-operator.ts'
import { GATEWAYS, type Gateway, type LiveRows } from './live-rows.ts'

const SQL_PROTOCOLS = ['postgresql:', 'postgres:', 'mysql:']
const REDIS_PROTOCOLS = ['redis:', 'rediss:']

/** @throws BadSettings */
export function gatewayNamed(name: string): Gateway {
  const gateway = GATEWAYS.find(one => one === name)
  if (gateway === undefined) throw new BadSettings([`--from must be ${GATEWAYS.join(' or ')}.`])
  return gateway
}

/**
 * Reads all sessions of another program. The addresses are settings or files, since everybody can read the arguments of a process.
 * @throws BadSettings, UnreadableSource
 */
export async function readLive(gateway: Gateway, env: NodeJS.ProcessEnv): Promise<LiveRows> {
  const environment = new Environment(env)
  const sql = urlOf(environment, 'IMPORT_DATABASE_URL', SQL_PROTOCOLS)
  const redis = urlOf(environment, 'IMPORT_REDIS_URL', REDIS_PROTOCOLS)
  if (gateway === 'waha' && (redis !== null || sql?.protocol === 'mysql:'))
    throw new BadSettings(['WAHA keeps its sessions in PostgreSQL or in files.'])
  if (sql === null && redis === null)
    throw new BadSettings([
      'Set IMPORT_DATABASE_URL or IMPORT_REDIS_URL to the address of the other program’s database.',
    ])
  // In this order: a key in Redis is newer than the row of the same session.
  const found = [...(sql ? [await readSql(gateway, sql)] : []), ...(redis ? [await readHashes(redis)] : [])]
  const rows = found.flatMap(found => found.rows)
  const linked = new Set(rows.filter(({ value }) => value !== null).map(({ session }) => session))
  const clients = found.map(({ otherClients }) => otherClients).filter(count => count !== null)
  return {
    rows: rows.filter(({ session }) => linked.has(session)),
    otherClients: clients.length === 0 ? null : clients.reduce((sum, count) => sum + count, 0),
  }
}

/** Loads only the library that it needs. */
async function readSql(gateway: Gateway, url: URL): Promise<LiveRows> {
  if (url.protocol !== 'mysql:') return (await import('./postgres.ts')).readPostgres(gateway, url)
  return (await import('./mysql.ts')).readMysql(url)
}

async function readHashes(url: URL): Promise<LiveRows> {
  return (await import('./redis.ts')).readRedis(url)
}

/** The sentences do not repeat the address, which contains a password. */
function urlOf(environment: Environment, name: string, protocols: readonly string[]): URL | null {
  const text = commandSetting(environment, name)
  if (text === null) return null
  const url = URL.parse(text)
  if (url !== null && url.hostname !== '' && protocols.includes(url.protocol)) return url
  throw new BadSettings([`${name} must be an address of the form ${protocols[0]}//user:password@host:port/database.`])
}
