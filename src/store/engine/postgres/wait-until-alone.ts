import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { StillInUse } from '../../errors.ts'

const POLL_EVERY_MS = 200
/** Time for the connections of a process that has just ended to close. */
const CONNECTIONS_GONE_WITHIN_MS = 3_000
/** Longer than a lease, which lapses after 15 s. */
const LEASES_LAPSED_WITHIN_MS = 20_000

/**
 * Waits until no other process of Pombal uses the database: Pombal has no other connection, and no lease of a
 * disconnected node is still held.
 * @param pool must have a single connection
 * @throws StillInUse
 */
export async function waitUntilAlone(pool: pg.Pool): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += POLL_EVERY_MS) {
    const { connections, leases } = await countOthers(pool)
    if (connections === 0 && leases === 0) return
    if (waitedMs >= (connections > 0 ? CONNECTIONS_GONE_WITHIN_MS : LEASES_LAPSED_WITHIN_MS)) throw new StillInUse()
    await sleep(POLL_EVERY_MS)
  }
}

async function countOthers(pool: pg.Pool): Promise<{ connections: number; leases: number }> {
  const { rows } = await pool.query<{ connections: number; leases: number }>(`
    select
      (select count(*) from pg_stat_activity where datname = current_database()
        and application_name = current_setting('application_name') and pid <> pg_backend_pid()) as connections,
      (select count(*) from leases where owner is not null
        and lease_until > extract(epoch from clock_timestamp()) * 1000) as leases`)
  return rows[0]!
}
