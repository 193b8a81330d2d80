import type { Api, ApiContext } from '../../context.ts'
import {
  describeRedelivery,
  REDELIVERY_REFUSALS,
  redeliver,
  redeliveryBody,
  redeliveryResponse,
} from '../../endpoints/redeliver.ts'
import { eventParams, getInstanceOrRefuse } from '../instances/instance-params.ts'

export function redeliverEvent(api: Api, context: ApiContext): void {
  api.post(
    '/instances/:id/events/:eventId/redeliver',
    {
      schema: {
        operationId: 'redeliverEvent',
        summary: 'Deliver an event again',
        description: describeRedelivery(context.settings),
        tags: ['Event log'],
        params: eventParams,
        body: redeliveryBody,
        response: redeliveryResponse,
      },
      config: { optionalBody: true, refusals: ['instance_not_found', ...REDELIVERY_REFUSALS] },
    },
    async (request, reply) => {
      const { eventId } = request.params
      const { id } = await getInstanceOrRefuse(context.store, request.params.id)
      await redeliver(context, id, eventId, request.body.endpointId, 'all')
      return reply.code(202).send({ data: { eventId } })
    },
  )
}
