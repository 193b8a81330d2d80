import { createClient } from '@redis/client'
import type { Row } from '../sessions/read-rows.ts'
import { CONNECT_WITHIN_MS, type LiveRows, MAX_SOURCE_BYTES } from './live-rows.ts'
import { tooLarge, unreadable } from './unreadable-source.ts'

/** `<CACHE_REDIS_PREFIX_KEY>:instance:<ID of the instance>`, a hash with a field for each key. */
const HASHES = '*:instance:*'
const HASH_NAME = /^.*:instance:([^:]+)$/

/**
 * Reads Evolution's hashes. Redis cannot read several keys as of one moment: stop Evolution first.
 * @throws UnreadableSource
 */
export async function readRedis(url: URL): Promise<LiveRows> {
  const client = createClient({
    url: url.href,
    disableOfflineQueue: true,
    socket: { connectTimeout: CONNECT_WITHIN_MS, socketTimeout: CONNECT_WITHIN_MS, reconnectStrategy: false },
  })
  // A broken connection also fails its command.
  client.on('error', () => undefined)
  try {
    await client.connect()
    const rows: Row[] = []
    let bytes = 0
    for await (const names of client.scanIterator({ MATCH: HASHES, TYPE: 'hash', COUNT: 1_000 })) {
      for (const name of names) {
        const session = HASH_NAME.exec(name)?.[1]
        if (session === undefined) continue
        const fields = Object.entries(await client.hGetAll(name))
        bytes += fields.reduce((sum, [key, value]) => sum + key.length + value.length, 0)
        if (bytes > MAX_SOURCE_BYTES) throw tooLarge(url)
        rows.push(...fields.map(([key, value]) => ({ session, key, value })))
      }
    }
    return { rows, otherClients: await countOthers(client) }
  } catch (error) {
    throw unreadable(url, error)
  } finally {
    client.destroy()
  }
}

/** Null if the user may not see the clients. */
async function countOthers(client: {
  clientId(): Promise<number>
  clientList(): Promise<{ id: number; db: number }[]>
}): Promise<number | null> {
  try {
    const own = await client.clientId()
    const clients = await client.clientList()
    const database = clients.find(({ id }) => id === own)?.db
    return clients.filter(({ id, db }) => id !== own && db === database).length
  } catch {
    return null
  }
}
