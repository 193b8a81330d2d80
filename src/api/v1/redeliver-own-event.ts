import { Type } from 'typebox'
import type { Api, ApiContext } from '../context.ts'
import {
  describeRedelivery,
  REDELIVERY_REFUSALS,
  redeliver,
  redeliveryBody,
  redeliveryResponse,
} from '../endpoints/redeliver.ts'
import { eventIdSchema } from '../resources/events/event.ts'

export function redeliverOwnEvent(api: Api, context: ApiContext): void {
  api.post(
    '/events/:eventId/redeliver',
    {
      schema: {
        operationId: 'redeliverOwnEvent',
        summary: 'Deliver an event again',
        description: describeRedelivery(context.settings),
        tags: ['Events'],
        params: Type.Object({ eventId: eventIdSchema }),
        body: redeliveryBody,
        response: redeliveryResponse,
      },
      config: { scope: 'events', optionalBody: true, refusals: REDELIVERY_REFUSALS },
    },
    async (request, reply) => {
      const { eventId } = request.params
      await redeliver(context, request.instanceId, eventId, request.body.endpointId, 'own')
      return reply.code(202).send({ data: { eventId } })
    },
  )
}
