import type { InstanceId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { AttemptRecord } from '../../../store/deliveries/deliveries.ts'
import type { EventDetail } from '../../../store/events/events.ts'
import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { eventDetailSchema, eventDetailView, type HeadersOfAttempt } from '../../resources/event.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { eventParams, getInstanceOrRefuse } from '../instances/instance-params.ts'

export function getInstanceEvent(api: Api, context: ApiContext): void {
  const { store } = context
  api.get(
    '/instances/:id/events/:eventId',
    {
      schema: {
        operationId: 'getInstanceEvent',
        summary: 'Read an event with its deliveries and their attempts',
        tags: ['Event log'],
        params: eventParams,
        response: { 200: dataOf(eventDetailSchema, 'The event, the bytes posted, and every attempt.') },
      },
      config: { refusals: ['instance_not_found', 'event_not_found'] },
    },
    async request => {
      const { eventId } = request.params
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const event = isId(eventId) ? await store.events.find(id, eventId) : null
      if (!event) throw new Refusal('event_not_found')
      return { data: eventDetailView(event, await createHeadersOf(context, id, event)) }
    },
  )
}

/** Recreates the headers of past attempts from the body, the time and the secrets that were in force. */
async function createHeadersOf(
  { store: { instances }, webhooks }: ApiContext,
  instanceId: InstanceId,
  event: EventDetail,
): Promise<HeadersOfAttempt> {
  const changedAt = await instances.findSecretChangedAt(instanceId)
  const body = Buffer.from(event.body)
  const attempts = event.deliveries.flatMap(({ log }) => log)
  const entries = await Promise.all(
    attempts.map(async attempt => {
      const { attemptNumber, startedAt } = attempt
      const secrets = await instances.findSigningSecrets(instanceId, startedAt)
      if (secrets === null) return [attempt, {}] as const
      const { id: eventId, kind } = event
      const headers = webhooks.headersOf({ body, secrets, eventId, kind, attemptNumber, now: startedAt })
      const isSecretGone = changedAt !== null && startedAt < changedAt
      return [attempt, isSecretGone ? withoutSignatures(headers) : headers] as const
    }),
  )
  const headers = new Map<AttemptRecord, Record<string, string>>(entries)
  return attempt => headers.get(attempt) ?? {}
}

function withoutSignatures(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !/signature$/i.test(name)))
}
