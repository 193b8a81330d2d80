import { Type } from 'typebox'
import { Refusal } from '../../domain/refusal.ts'
import type { Api, ApiContext } from '../context.ts'
import { createHeadersOf } from '../endpoints/attempt-headers.ts'
import {
  describeRedelivery,
  REDELIVERY_REFUSALS,
  redeliver,
  redeliveryBody,
  redeliveryResponse,
} from '../endpoints/redeliver.ts'
import { isId } from '../input.ts'
import { eventDetailSchema, eventDetailView, eventIdSchema } from '../resources/events/event.ts'
import { hideEndpointsOfEvent } from '../resources/events/hide-endpoint.ts'
import { dataOf } from '../resources/schema-kit.ts'

export function getEvent(api: Api, context: ApiContext): void {
  const { store } = context
  api.get(
    '/events/:eventId',
    {
      schema: {
        operationId: 'getEvent',
        summary: 'Read an event with its deliveries and their attempts',
        description:
          'For a key without the scope `webhooks`, each `url` is shortened to `https://host/…`, `responseExcerpt` is ' +
          'null, and the headers have no signatures.',
        tags: ['Events'],
        params: Type.Object({ eventId: eventIdSchema }),
        response: { 200: dataOf(eventDetailSchema, 'The event, the bytes posted, and the attempts.') },
      },
      config: { scope: 'events', refusals: ['event_not_found'] },
    },
    async request => {
      const { eventId } = request.params
      const { instanceId } = request
      const event = isId(eventId) ? await store.events.find(instanceId, eventId) : null
      if (!event) throw new Refusal('event_not_found')
      const view = eventDetailView(event, await createHeadersOf(context, instanceId, event))
      const mayReadEndpoints = request.apiKey === null || request.apiKey.scopes.includes('webhooks')
      return { data: mayReadEndpoints ? view : hideEndpointsOfEvent(view) }
    },
  )
}

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
