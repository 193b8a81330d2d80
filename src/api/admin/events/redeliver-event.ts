import { Type } from 'typebox'
import { Refusal, type RefusalCode } from '../../../domain/refusal.ts'
import type { RedeliverOutcome } from '../../../store/deliveries/deliveries.ts'
import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { eventIdSchema } from '../../resources/event.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { eventParams, getInstanceOrRefuse } from '../instances/instance-params.ts'

const REFUSED = {
  no_event: 'event_not_found',
  no_webhook: 'webhook_not_configured',
  no_endpoint: 'endpoint_not_found',
  still_pending: 'delivery_pending',
} as const satisfies Record<Exclude<RedeliverOutcome, 'queued'>, RefusalCode>

export function redeliverEvent(api: Api, { store, now, settings }: ApiContext): void {
  const attempts = settings.documented.webhookRetryDelaysMs.length + 1
  api.post(
    '/instances/:id/events/:eventId/redeliver',
    {
      schema: {
        operationId: 'redeliverEvent',
        summary: 'Deliver an event again',
        description:
          'Posts the same bytes under the same `webhook-id` to the current URL with the current secret, outside the order ' +
          `and with up to ${attempts} attempts. The event must be delivered, exhausted or never posted.`,
        tags: ['Event log'],
        params: eventParams,
        response: { 202: dataOf(Type.Object({ eventId: eventIdSchema }), 'Queued again.') },
      },
      config: {
        refusals: ['instance_not_found', 'event_not_found', 'webhook_not_configured', 'delivery_pending'],
      },
    },
    async (request, reply) => {
      const { eventId } = request.params
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const outcome = isId(eventId) ? await store.deliveries.redeliver(id, eventId, now()) : 'no_event'
      if (outcome !== 'queued') throw new Refusal(REFUSED[outcome])
      return reply.code(202).send({ data: { eventId } })
    },
  )
}
