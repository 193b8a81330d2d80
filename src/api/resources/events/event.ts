import { type Static, Type } from 'typebox'
import { DELIVERY_STATES } from '../../../domain/events/delivery.ts'
import { EVENT_KINDS } from '../../../domain/events/event.ts'
import { deliveryIdOf, type EventId } from '../../../domain/ids.ts'
import type { AttemptRecord, DeliverySummary } from '../../../store/deliveries/deliveries.ts'
import type { EventDetail, EventRecord } from '../../../store/events/events.ts'
import { messageIdSchema } from '../message.ts'
import { moment, nullable, oneOf, toIso, toIsoOrNull } from '../schema-kit.ts'
import { endpointIdSchema } from './endpoint.ts'

export const eventIdSchema = Type.String({
  description: 'The event; the `webhook-id` of its deliveries.',
  examples: ['evt_01kajxq8r2f0v7m3n5p9s1t4w6'],
})

export const eventKindSchema = oneOf(EVENT_KINDS, { description: 'The kind of event.' })

const deliveryStateSchema = oneOf(DELIVERY_STATES, {
  description:
    '`pending`; `blocked` (waits for the previous event of its message); `delivered`; `exhausted` (every attempt ' +
    'failed).',
})

export const deliveryIdSchema = Type.String({
  description: 'The delivery.',
  examples: ['dlv_01kajxq8r2f0v7m3n5p9s1t4w61z'],
})

const deliveryProperties = {
  id: deliveryIdSchema,
  endpointId: endpointIdSchema,
  url: Type.String({
    description:
      'The URL in force when the event was created or redelivered. Callers who may not read endpoints see ' +
      '`https://host/…`.',
  }),
  state: deliveryStateSchema,
  attemptCount: Type.Integer({ description: 'Attempts made so far.' }),
  nextAttemptAt: nullable(moment('When the next attempt is due; null if there is none.')),
  redelivery: Type.Boolean({ description: 'Whether this is a requested redelivery, outside the order.' }),
}

export const deliverySchema = Type.Object(deliveryProperties, {
  title: 'Delivery',
  description: 'The delivery of one event to one endpoint.',
})

export type DeliveryView = Static<typeof deliverySchema>

const attemptSchema = Type.Object(
  {
    attemptNumber: Type.Integer({
      description: 'From 1. A requested attempt has the number of the one that was due next.',
    }),
    requested: Type.Boolean({ description: 'Whether a caller requested this attempt ahead of the schedule.' }),
    url: Type.String(),
    startedAt: moment('When it began.'),
    durationMs: Type.Number({ description: 'Duration in milliseconds.' }),
    status: nullable(Type.Integer({ description: 'The HTTP status of the response; null if no status line arrived.' })),
    error: nullable(
      Type.String({ description: 'A code such as `timeout` or `blocked_address`; null if there is a status.' }),
    ),
    responseExcerpt: nullable(
      Type.String({
        description:
          "The beginning of the answer's body, at most 1 KiB. Also null for callers who may not read endpoints, " +
          'because answers often repeat the URL.',
      }),
    ),
    headers: Type.Record(Type.String(), Type.String(), {
      description:
        'The headers as posted, except `traceparent`. The signatures are left out if the secret was replaced later, or less ' +
        'than 10 s earlier.',
    }),
  },
  { title: 'Attempt', description: 'One POST of a delivery.' },
)

const eventProperties = {
  id: eventIdSchema,
  event: eventKindSchema,
  timestamp: moment('The timestamp in the body.'),
  createdAt: moment('When the event was created.'),
  messageId: nullable({ ...messageIdSchema, description: 'The message or command that the event is about.' }),
  with: Type.String({
    description: 'The number or group on the other side; empty if there is none.',
    examples: ['5511987654321'],
  }),
}

export const eventSchema = Type.Object(
  {
    ...eventProperties,
    delivery: nullable(deliverySchema),
  },
  {
    title: 'EventSummary',
    description:
      'An event and its latest delivery. `delivery` is null if there is none. If there are several endpoints, ' +
      '`delivery` is the latest one to the endpoint that most needs attention.',
  },
)

export type AttemptView = Static<typeof attemptSchema>

export type EventView = Static<typeof eventSchema>

export const eventDetailSchema = Type.Object(
  {
    ...eventProperties,
    delivery: nullable(deliverySchema),
    body: Type.String({ description: 'The posted bytes, the same in every attempt.' }),
    deliveries: Type.Array(
      Type.Object(
        {
          ...deliveryProperties,
          attempts: Type.Array(attemptSchema, {
            description: 'Oldest first. Of all attempts of the event, the newest 100 are returned.',
          }),
        },
        { title: 'DeliveryWithAttempts' },
      ),
      {
        description: 'The deliveries of the event, oldest first. If there are more than 100, the oldest are left out.',
      },
    ),
  },
  { title: 'EventDetail', description: 'An event with its deliveries and their attempts.' },
)

export function deliveryView(eventId: EventId, delivery: DeliverySummary): DeliveryView {
  const { endpointId, url, state, attempts, nextAttemptAt, redelivery } = delivery
  const id = deliveryIdOf(eventId, delivery.id)
  return { id, endpointId, url, state, attemptCount: attempts, nextAttemptAt: toIsoOrNull(nextAttemptAt), redelivery }
}

export function eventView(event: EventRecord): EventView {
  return {
    id: event.id,
    event: event.kind,
    timestamp: toIso(event.timestamp),
    createdAt: toIso(event.createdAt),
    messageId: event.messageId,
    with: event.with,
    delivery: event.delivery && deliveryView(event.id, event.delivery),
  }
}

export type EventDetailView = Static<typeof eventDetailSchema>

export type HeadersOfAttempt = (attempt: AttemptRecord) => Record<string, string>

export function eventDetailView(event: EventDetail, headersOf: HeadersOfAttempt): EventDetailView {
  const deliveries = event.deliveries.map(delivery => ({
    ...deliveryView(event.id, delivery),
    attempts: delivery.log.map(attempt => attemptView(attempt, headersOf(attempt))),
  }))
  return { ...eventView(event), body: event.body, deliveries }
}

function attemptView(attempt: AttemptRecord, headers: Record<string, string>): AttemptView {
  const { attemptNumber, requested, url, startedAt, durationMs, status, error, responseExcerpt } = attempt
  return {
    attemptNumber,
    requested,
    url,
    startedAt: toIso(startedAt),
    durationMs,
    status,
    error,
    responseExcerpt,
    headers,
  }
}
