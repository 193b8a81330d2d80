import { type RawBuilder, sql } from 'kysely'
import { type ConnectionState, RECONNECTING_MS } from '../../domain/connection/connection.ts'

/** An SQL version of `currentState`, of the connection `c` with the lease `l`. */
export function currentStateOf(c: string, l: string, now: RawBuilder<number>): RawBuilder<ConnectionState> {
  const state = sql.ref(`${c}.state`)
  const lapsed = sql`${sql.ref(`${l}.lease_until`)} <= ${now}`
  return sql<ConnectionState>`case
    when ${state} = 'reconnecting' or (${state} = 'connected' and ${lapsed}) then
      case when ${now} - coalesce(${sql.ref(`${c}.last_connected_at`)}, 0) < ${sql.lit(RECONNECTING_MS)}
        then 'reconnecting' else 'disconnected' end
    else ${state} end`
}
