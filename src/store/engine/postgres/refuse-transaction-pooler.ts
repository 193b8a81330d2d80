import type pg from 'pg'
import { NeedsSessions } from '../../errors.ts'
import { createClient, reach } from './pools.ts'

/** Transactions held open meanwhile, each of which may take the session that the first one had. */
const OTHERS = 4

/**
 * Tells a pooler that gives every transaction another session of the database from one that does not. What we need of
 * a session: statements prepared once, settings of the planner, LISTEN.
 * @throws NeedsSessions
 */
export async function refuseTransactionPooler(url: string): Promise<void> {
  const client = createClient(url)
  const others = Array.from({ length: OTHERS }, () => createClient(url))
  for (const one of [client, ...others]) one.on('error', () => undefined)
  try {
    await reach(client.connect())
    const first = await sessionOf(client)
    // A pooler makes up the number that it tells at the login.
    if (first === (client as unknown as { processID: number }).processID) return
    for (const other of others) {
      await reach(other.connect())
      await reach(other.query('begin'))
      // Whoever has a session of the database to himself cannot be made to change it.
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
