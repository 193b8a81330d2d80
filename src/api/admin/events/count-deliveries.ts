import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { parseMoment } from '../../input.ts'
import { dataOf, moment, oneOf } from '../../resources/schema-kit.ts'
import { deliveryCountsSchema } from '../../resources/statistics.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

export function countDeliveries(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/deliveries/counts',
    {
      schema: {
        operationId: 'countDeliveries',
        summary: 'Count events by the outcome of their delivery, and pending redeliveries',
        description: 'The number of events that `redeliverEvents` would queue, and its progress.',
        tags: ['Event log'],
        params: instanceParams,
        querystring: Type.Object({
          since: moment('Only events created at or after this time.'),
          notPosted: Type.Optional(
            oneOf(['true', 'false'], {
              description: 'Whether to count events that were never posted, too. Reads all events.',
            }),
          ),
        }),
        response: { 200: dataOf(deliveryCountsSchema, 'Up to 10,000 of each.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const since = parseMoment('since', request.query.since)
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const { notPosted: countsNotPosted = 'false' } = request.query
      const [delivered, exhausted, notPosted, redelivering] = await Promise.all([
        store.statistics.countEnded(id, since, 'delivered'),
        store.statistics.countEnded(id, since, 'exhausted'),
        countsNotPosted === 'true' ? store.statistics.countNotPosted(id, since) : null,
        store.statistics.countRedelivering(id),
      ])
      return { data: { delivered, exhausted, notPosted, redelivering } }
    },
  )
}
