import { Type } from 'typebox'
import { DELIVERY_FILTERS } from '../../../domain/events/delivery.ts'
import { EVENT_KINDS } from '../../../domain/events/event.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { endpointIdSchema } from '../../resources/events/endpoint.ts'
import { eventSchema, eventView } from '../../resources/events/event.ts'
import { hideEndpoint } from '../../resources/events/hide-endpoint.ts'
import { pageOf, pageQuery, pageRequest } from '../../resources/page.ts'
import { oneOf } from '../../resources/schema-kit.ts'
import { hiddenFrom } from '../access/authorize.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

const querySchema = Type.Object({
  ...pageQuery,
  state: Type.Optional(
    oneOf(DELIVERY_FILTERS, {
      description:
        'Only events whose latest delivery is in this state. `pending` includes `retrying` (after a failed attempt); ' +
        '`not_posted`: a `message.received`, `.sent`, `.delivered`, `.read` or `.failed` that no endpoint received.',
    }),
  ),
  endpoint: Type.Optional({
    ...endpointIdSchema,
    description: 'Only events with a delivery to this endpoint, in `state` if given. `delivery` is then that delivery.',
  }),
  kind: Type.Optional(oneOf(EVENT_KINDS, { description: 'Only events of this kind.' })),
})

export function listEvents(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/events',
    {
      schema: {
        operationId: 'listEvents',
        summary: 'List events',
        description: 'Events, newest first, each with its latest delivery.',
        tags: ['Event log'],
        params: instanceParams,
        querystring: querySchema,
        response: { 200: pageOf(eventSchema, 'One page of events.') },
      },
      config: { refusals: ['instance_not_found', 'endpoint_not_found', 'invalid_request'] },
    },
    async request => {
      const { state, kind, endpoint: endpointId } = request.query
      if (endpointId !== undefined && !isId(endpointId)) throw new Refusal('endpoint_not_found')
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const page = await store.events.list(id, pageRequest(request.query), { state, kind, endpointId })
      const isHidden = hiddenFrom(request)
      return { data: page.data.map(event => hideEndpoint(eventView(event), isHidden)), nextCursor: page.nextCursor }
    },
  )
}
