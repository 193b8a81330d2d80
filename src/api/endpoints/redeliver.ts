import { Type } from 'typebox'
import type { Reach } from '../../domain/events/endpoint.ts'
import type { InstanceId } from '../../domain/ids.ts'
import { Refusal, type RefusalCode } from '../../domain/refusal.ts'
import type { RedeliverOutcome } from '../../store/deliveries/deliveries.ts'
import type { ApiContext, ApiSettings } from '../context.ts'
import { isId } from '../input.ts'
import { endpointIdSchema } from '../resources/events/endpoint.ts'
import { eventIdSchema } from '../resources/events/event.ts'
import { dataOf } from '../resources/schema-kit.ts'

const REFUSED = {
  no_event: 'event_not_found',
  no_webhook: 'webhook_not_configured',
  no_endpoint: 'endpoint_not_found',
  still_pending: 'delivery_pending',
  too_many: 'too_many_redeliveries',
} as const satisfies Record<Exclude<RedeliverOutcome, 'queued'>, RefusalCode>

export const REDELIVERY_REFUSALS: RefusalCode[] = Object.values(REFUSED)

export const redeliveryBody = Type.Object(
  {
    endpointId: Type.Optional({
      ...endpointIdSchema,
      description: 'The endpoint to post to. By default, every endpoint that receives events of this kind.',
    }),
  },
  { title: 'Redelivery' },
)

export const redeliveryResponse = { 202: dataOf(Type.Object({ eventId: eventIdSchema }), 'Queued again.') }

export function describeRedelivery({ documented }: ApiSettings): string {
  return (
    'Posts the same bytes under the same `webhook-id` to the current URL with the current secret, outside the order ' +
    `and with up to ${documented.webhookRetryDelaysMs.length + 1} attempts. The event must be delivered, exhausted or never ` +
    'posted. An endpoint with an unfinished delivery of the event, or with 100 deliveries of it, is left out.'
  )
}

/** @throws Refusal */
export async function redeliver(
  { store, now }: ApiContext,
  instanceId: InstanceId,
  eventId: string,
  endpointId: string | undefined,
  reach: Reach,
): Promise<void> {
  const isKnown = isId(eventId) && (endpointId === undefined || isId(endpointId))
  const outcome = isKnown
    ? await store.deliveries.redeliver(instanceId, eventId, now(), endpointId, reach)
    : isId(eventId)
      ? 'no_endpoint'
      : 'no_event'
  if (outcome !== 'queued') throw new Refusal(REFUSED[outcome])
}
