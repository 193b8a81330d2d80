import { setImmediate } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import type { StoredConnectionState } from '../../domain/connection/connection.ts'
import { type ConnectionCause, currentState, REQUESTED_LOGOUT } from '../../domain/connection/connection.ts'
import { type EventId, firstEventId, type InstanceId } from '../../domain/ids.ts'
import type { InstanceKind } from '../../domain/instance.ts'
import { currentStateOf } from '../connections/current-state.ts'
import { isOwnEndpoint, newestGivenUp } from '../deliveries/given-up.ts'
import type { Core } from '../engine/core.ts'
import { isToOwn } from '../engine/schema/events.ts'
import { type InstanceTrouble, MAX_TROUBLES } from './statistics.ts'

/** Instances checked by one query. Other calls run in between. */
const WINDOW = 1_000

/** The causes for which an unlinked instance needs attention. It needs none if nobody has tried to link it yet. */
const FAILED_TO_LINK = [
  'banned',
  'version_refused',
  'login_refused',
  'no_linked_devices',
  'unreachable',
  'proxy_failed',
  'passkey_required',
  'identity_rejected',
  'linking_unfinished',
  'phone_offline',
  'device_limit',
  'sandbox_off',
  'thread_crashed',
] as const satisfies ConnectionCause[]

interface TroubleRow {
  seq: number
  id: string
  name: string
  kind: InstanceKind
  created_at: number
  state: StoredConnectionState
  reason: string
  cause: ConnectionCause | null
  since: number
  phone: string | null
  last_connected_at: number | null
  restricted_until: number | null
  is_alive: number
  given_up: number
  retrying: number
  now: number
}

/**
 * Reads the instances in the order of their creation, window by window, with a few index searches for each instance.
 * @param ids null: all instances
 */
export async function readTroubles(
  core: Core,
  givenUpSince: number,
  ids: readonly InstanceId[] | null,
): Promise<InstanceTrouble[]> {
  const { reader, statements } = core
  const run = <O>(query: RawBuilder<O>) => reader.query<O>({ compile: () => query.compile(statements.db) })
  const first = firstEventId(givenUpSince)
  const readWhere = async (which: RawBuilder<unknown>) => {
    const rows = await run(troublesQuery(statements.now, first, which))
    return rows.toSorted((one, other) => Number(one.seq) - Number(other.seq)).map(toTrouble)
  }
  if (ids !== null) return ids.length === 0 ? [] : readWhere(sql`i.id in (${sql.join(ids)})`)
  const found: InstanceTrouble[] = []
  for (let after = 0; ; ) {
    const [window] = await run(windowQuery(after))
    const last = Number(window?.last ?? 0)
    if (last > 0) found.push(...(await readWhere(sql`i.seq > ${after} and i.seq <= ${last}`)))
    if (Number(window?.count ?? 0) < WINDOW || found.length >= MAX_TROUBLES) return found.slice(0, MAX_TROUBLES)
    after = last
    await setImmediate()
  }
}

function windowQuery(after: number): RawBuilder<{ last: number | null; count: number }> {
  return sql`select max(seq) as last, count(*) as count from
    (select seq from instances where seq > ${after} order by seq limit ${sql.lit(WINDOW)}) as instances_of_window`
}

function troublesQuery(now: RawBuilder<number>, first: EventId, which: RawBuilder<unknown>): RawBuilder<TroubleRow> {
  return sql<TroubleRow>`select * from (
    select i.seq, i.id, i.name, i.kind, i.created_at, c.state, c.reason, c.cause, c.since, c.phone, c.last_connected_at,
      c.restricted_until, ${now} as now,
      case when l.lease_until > ${now} then 1 else 0 end as is_alive,
      case when c.state = 'stopped'
        or (c.state = 'logged_out' and coalesce(c.cause, '') not in (${sql.join(REQUESTED_LOGOUT.map(cause => sql.lit(cause)))}))
        or (c.state = 'unlinked' and c.cause in (${sql.join(FAILED_TO_LINK.map(cause => sql.lit(cause)))}))
        or ${currentStateOf('c', 'l', now)} = 'disconnected' then 1 else 0 end as is_down,
      case when exists (select 1 from ${newestGivenUp(sql`i.id`, first)} as given_up
        where ${isOwnEndpoint(sql`i.id`, sql`given_up.endpoint_id`)}) then 1 else 0 end as given_up,
      case when exists (select 1 from deliveries d where d.instance_id = i.id and d.readiness = 'retry'
        and ${isToOwn('d')})
        then 1 else 0 end as retrying
    from instances i
    join connections c on c.instance_id = i.id
    join leases l on l.instance_id = i.id
    where ${which} and i.deleted_at is null
  ) as checked where is_down = 1 or given_up = 1 or retrying = 1 or coalesce(restricted_until, 0) > now`
}

function toTrouble(row: TroubleRow): InstanceTrouble {
  const now = Number(row.now)
  const stored = { state: row.state, lastConnectedAt: row.last_connected_at }
  const state = currentState(stored, row.is_alive === 1, now)
  const { id, name, kind, reason, phone } = row
  return {
    instance: { id, name, kind, state, reason, phone, createdAt: row.created_at },
    cause: row.cause,
    since: row.since,
    restrictedUntil: row.restricted_until !== null && row.restricted_until > now ? row.restricted_until : null,
    hasGivenUp: row.given_up === 1,
    isRetrying: row.retrying === 1,
  }
}
