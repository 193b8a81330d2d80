import { queryPostgres } from '../query-postgres.ts'
import type { Random } from '../rig/random.ts'
import type { Stage } from '../rig/stage.ts'
import type { Service } from '../service.ts'

/** How many instances each node runs at this moment, by its process. A lease's owner is `host-process-random`. */
async function countOwned(stage: Stage): Promise<Map<number, number>> {
  const { url } = stage.database
  if (url === null) return new Map([[stage.service.pid ?? 0, stage.players.length]])
  const rows = await queryPostgres<{ owner: string; count: string }>(
    url,
    'select owner, count(*) from leases where owner is not null group by owner',
  )
  return new Map(rows.map(({ owner, count }) => [Number(/-(\d+)-[^-]*$/.exec(owner)?.[1]), Number(count)]))
}

/** A node at random, of those that run something. */
export async function pickOwner(stage: Stage, random: Random): Promise<Service> {
  const owned = await countOwned(stage)
  const [first, ...rest] = stage.nodes.filter(({ pid }) => (owned.get(pid ?? 0) ?? 0) > 0)
  if (first === undefined) throw new Error('No node runs anything.')
  return random.pick([first, ...rest])
}
