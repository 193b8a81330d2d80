import type pg from 'pg'
import { NeedsSessions } from '../../errors.ts'
import { createClient, reach } from './pools.ts'

/** Concurrent transactions, each of which may take over the session of the first client. */
const OTHERS = 4

/**
 * Refuses a connection pooler in transaction mode. Pombal depends on sessions for prepared statements, planner settings and
 * LISTEN.
 * @throws NeedsSessions
 */
export async function refuseTransactionPooler(url: string): Promise<void> {
  const client = createClient(url)
  const others = Array.from({ length: OTHERS }, () => createClient(url))
  for (const one of [client, ...others]) one.on('error', () => undefined)
  try {
    await reach(client.connect())
    const first = await sessionOf(client)
    // A pooler reports an invented process ID at login.
    if (first === (client as unknown as { processID: number }).processID) return
    for (const other of others) {
      await reach(other.connect())
      await reach(other.query('begin'))
      // In session mode, other transactions never change the client's session.
      if ((await sessionOf(client)) !== first) throw new NeedsSessions()
    }
  } finally {
    for (const one of [client, ...others]) one.end().catch(() => undefined)
  }
}

async function sessionOf(client: pg.Client): Promise<number> {
  const { rows } = await reach(client.query<{ pid: number }>('select pg_backend_pid() as pid'))
  return rows[0]!.pid
}
