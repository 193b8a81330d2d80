import { Type } from 'typebox'
import { parseDeliveryId } from '../../domain/ids.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Api, ApiContext } from '../context.ts'
import { deliveryIdSchema } from '../resources/events/event.ts'
import { dataOf } from '../resources/schema-kit.ts'
import type { EndpointScope } from './scope.ts'

export function retryDelivery(api: Api, { store }: ApiContext, scope: EndpointScope): void {
  api.post(
    `${scope.deliveryPath}/:deliveryId/retry`,
    {
      schema: {
        operationId: `retry${scope.deliveryNoun}`,
        summary: 'Retry a delivery now',
        description:
          'Makes an additional attempt now, if the delivery waits for a retry. It carries the number of the attempt ' +
          'that is due next. If it fails, the scheduled attempt still takes place at its time.',
        tags: scope.deliveryTags,
        params: Type.Object({ ...scope.deliveryParams, deliveryId: deliveryIdSchema }),
        response: { 202: dataOf(Type.Object({ id: deliveryIdSchema }), 'Requested.') },
      },
      config: {
        ...scope.deliveryConfig,
        refusals: [...scope.deliveryRefusals, 'delivery_not_found', 'delivery_not_waiting', 'retry_too_soon'],
      },
    },
    async (request, reply) => {
      const instanceId = await scope.instanceOf(request)
      const { deliveryId: id } = request.params as { deliveryId: string }
      const named = parseDeliveryId(id)
      const now = store.clock.steady()
      const outcome = named && (await store.deliveries.retryNow(instanceId, named.eventId, named.seq, now, scope.reach))
      if (outcome === null || outcome.kind === 'no_delivery') throw new Refusal('delivery_not_found')
      if (outcome.kind === 'not_waiting') throw new Refusal('delivery_not_waiting')
      if (outcome.kind === 'too_soon') {
        throw new Refusal('retry_too_soon', undefined, { retryAfterSeconds: Math.ceil(outcome.afterMs / 1000) })
      }
      return reply.code(202).send({ data: { id } })
    },
  )
}
