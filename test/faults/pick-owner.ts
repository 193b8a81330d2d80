import { queryPostgres } from '../databases/query-postgres.ts'
import type { LoadHarness } from '../rig/harness.ts'
import type { Random } from '../rig/random.ts'
import type { Service } from '../service.ts'

/** The number of instances that each node runs now, by process ID. A lease's owner is `host-pid-random`. */
async function countOwned(harness: LoadHarness): Promise<Map<number, number>> {
  const { url } = harness.database
  if (url === null) return new Map([[harness.service.pid ?? 0, harness.linkedInstances.length]])
  const rows = await queryPostgres<{ owner: string; count: string }>(
    url,
    'select owner, count(*) from leases where owner is not null group by owner',
  )
  return new Map(rows.map(({ owner, count }) => [Number(/-(\d+)-[^-]*$/.exec(owner)?.[1]), Number(count)]))
}

/** A random node of those that run at least one instance. */
export async function pickOwner(harness: LoadHarness, random: Random): Promise<Service> {
  const owned = await countOwned(harness)
  const [first, ...rest] = harness.nodes.filter(({ pid }) => (owned.get(pid ?? 0) ?? 0) > 0)
  if (first === undefined) throw new Error('No node runs anything.')
  return random.pick([first, ...rest])
}
