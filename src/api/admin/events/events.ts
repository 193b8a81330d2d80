import { Type } from 'typebox'
import { DELIVERY_FILTERS, REDELIVERABLE } from '../../../domain/events/delivery.ts'
import { EVENT_KINDS } from '../../../domain/events/event.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { createHeadersOf } from '../../endpoints/attempt-headers.ts'
import {
  describeRedelivery,
  REDELIVERY_REFUSALS,
  redeliver,
  redeliveryBody,
  redeliveryResponse,
} from '../../endpoints/redeliver.ts'
import { filterNamed, isId, parseMoment } from '../../input.ts'
import { endpointIdSchema } from '../../resources/events/endpoint.ts'
import { eventDetailSchema, eventDetailView, eventSchema, eventView } from '../../resources/events/event.ts'
import { hideEndpoint, hideEndpointsOfEvent } from '../../resources/events/hide-endpoint.ts'
import { pageOf, pageQuery, pageRequest } from '../../resources/page.ts'
import { dataOf, moment, oneOf } from '../../resources/schema-kit.ts'
import { deliveryCountsSchema } from '../../resources/statistics.ts'
import { hasRole, hiddenFrom } from '../access/authorize.ts'
import { eventParams, getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

const querySchema = Type.Object({
  ...pageQuery,
  state: Type.Optional(
    oneOf(DELIVERY_FILTERS, {
      description:
        'Only events whose latest delivery is in this state. `pending` includes `retrying` (after a failed attempt); ' +
        '`not_posted`: a `message.received`, `.sent`, `.delivered`, `.read` or `.failed` that no endpoint was to receive.',
    }),
  ),
  endpoint: Type.Optional({
    ...endpointIdSchema,
    description: 'Only events with a delivery to this endpoint, in `state` if given. `delivery` is then that delivery.',
  }),
  event: Type.Optional(oneOf(EVENT_KINDS, { description: 'Only events of this kind.' })),
  kind: Type.Optional(oneOf(EVENT_KINDS, { description: 'Deprecated alias of `event`.' })),
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
      const { state, event, kind: older, endpoint: endpointId } = request.query
      const kind = filterNamed(['event', 'kind'], [event, older])
      if (endpointId !== undefined && !isId(endpointId)) throw new Refusal('endpoint_not_found')
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const page = await store.events.list(id, pageRequest(request.query), { state, kind, endpointId })
      const isHidden = hiddenFrom(request)
      return { data: page.data.map(event => hideEndpoint(eventView(event), isHidden)), nextCursor: page.nextCursor }
    },
  )
}

export function countDeliveries(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/deliveries/counts',
    {
      schema: {
        operationId: 'countDeliveries',
        summary: 'Count events by the outcome of their delivery, and those that are being redelivered',
        description: 'The number of events that `redeliverEvents` would queue, and its progress.',
        tags: ['Event log'],
        params: instanceParams,
        querystring: Type.Object({
          since: moment('Only events created at or after this time.'),
          notPosted: Type.Optional(
            oneOf(['true', 'false'], {
              description: 'Whether to also count events that were never posted. This reads all events.',
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

export function getInstanceEvent(api: Api, context: ApiContext): void {
  const { store } = context
  api.get(
    '/instances/:id/events/:eventId',
    {
      schema: {
        operationId: 'getInstanceEvent',
        summary: 'Read an event with its deliveries and their attempts',
        description:
          'For viewers, `url` is shortened to its origin, `responseExcerpt` is null, and the headers contain no ' +
          'signatures. For operators, this applies only to deliveries to operator endpoints.',
        tags: ['Event log'],
        params: eventParams,
        response: { 200: dataOf(eventDetailSchema, 'The event, the bytes posted, and the attempts.') },
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

const bodySchema = Type.Object(
  {
    since: moment('Events created at or after this time.'),
    state: Type.Optional(
      oneOf(REDELIVERABLE, {
        description:
          'Only events whose latest delivery is in this state, or that no endpoint was to receive ' +
          '(`not_posted`; these go to the endpoints that now receive their kind). Default: `exhausted`.',
      }),
    ),
  },
  { title: 'EventsToRedeliver' },
)

const queuedSchema = Type.Object({
  count: Type.Integer({ minimum: 0, description: 'How many events were queued again.' }),
})

export function redeliverEvents(api: Api, { store, now }: ApiContext): void {
  api.post(
    '/instances/:id/events/redeliver',
    {
      schema: {
        operationId: 'redeliverEvents',
        summary: 'Deliver many events again',
        description:
          'Redelivers every event that was created at or after `since` and is in `state`, as `redeliverEvent` does for one event.',
        tags: ['Event log'],
        params: instanceParams,
        body: bodySchema,
        response: { 202: dataOf(queuedSchema, 'Queued again.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request', 'webhook_not_configured'] },
    },
    async (request, reply) => {
      const { since, state = 'exhausted' } = request.body
      const sinceAt = parseMoment('since', since)
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const outcome = await store.deliveries.redeliverSince(id, sinceAt, state, now())
      if (outcome.kind === 'no_webhook') throw new Refusal('webhook_not_configured')
      return reply.code(202).send({ data: { count: outcome.count } })
    },
  )
}
