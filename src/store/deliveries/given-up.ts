import { type RawBuilder, sql } from 'kysely'
import { DEFAULT_ENDPOINT } from '../../domain/events/endpoint.ts'
import type { EventId } from '../../domain/ids.ts'
import { MAX_LOOKED_AT } from '../statistics/statistics.ts'

/**
 * The `event_id`, `seq` and `endpoint_id` of the newest `MAX_LOOKED_AT` deliveries of an instance that were given up. The
 * limit bounds the cost of a search for the deliveries of one endpoint. The inner query must use the index by state,
 * which does not contain the endpoint, so the endpoint is read by the key.
 * @param first the ID of the oldest event that counts
 */
export function newestGivenUp(
  instance: RawBuilder<unknown>,
  first: EventId | RawBuilder<unknown>,
): RawBuilder<unknown> {
  return sql`(select newest.event_id, newest.seq, (select o.endpoint_id from finished_deliveries as o
      where o.instance_id = ${instance} and o.event_id = newest.event_id and o.seq = newest.seq) as endpoint_id
    from (select f.event_id, f.seq from finished_deliveries as f
      where f.instance_id = ${instance} and f.state = 'exhausted' and f.superseded = 0 and f.event_id >= ${first}
      order by f.event_id desc limit ${sql.lit(MAX_LOOKED_AT)}) as newest)`
}

/** Whether the instance still has this endpoint. Only then can its events be redelivered. */
export function isOwnEndpoint(instance: RawBuilder<unknown>, id: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`case when ${id} = ${sql.lit(DEFAULT_ENDPOINT)}
    then exists (select 1 from instances as own where own.id = ${instance} and own.webhook_url is not null)
    else exists (select 1 from endpoints as own
      where own.instance_id = ${instance} and own.id = ${id} and own.deleted_at is null) end`
}
