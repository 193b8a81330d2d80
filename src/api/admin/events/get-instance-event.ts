import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { createHeadersOf } from '../../endpoints/attempt-headers.ts'
import { isId } from '../../input.ts'
import { eventDetailSchema, eventDetailView } from '../../resources/events/event.ts'
import { hideEndpointsOfEvent } from '../../resources/events/hide-endpoint.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { hasRole, hiddenFrom } from '../access/authorize.ts'
import { eventParams, getInstanceOrRefuse } from '../instances/instance-params.ts'

export function getInstanceEvent(api: Api, context: ApiContext): void {
  const { store } = context
  api.get(
    '/instances/:id/events/:eventId',
    {
      schema: {
        operationId: 'getInstanceEvent',
        summary: 'Read an event with its deliveries and their attempts',
        description:
          'For viewers, and of operator endpoints for everybody but owners, `url` is shortened to its origin, and the headers ' +
          'contain no signatures.',
        tags: ['Event log'],
        params: eventParams,
        response: { 200: dataOf(eventDetailSchema, 'The event, the bytes posted, and every attempt.') },
      },
      config: { refusals: ['instance_not_found', 'event_not_found'] },
    },
    async request => {
      const { eventId } = request.params
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const event = isId(eventId) ? await store.events.find(id, eventId, 'all') : null
      if (!event) throw new Refusal('event_not_found')
      const view = eventDetailView(event, await createHeadersOf(context, id, event))
      return { data: hasRole(request, 'owner') ? view : hideEndpointsOfEvent(view, hiddenFrom(request)) }
    },
  )
}
