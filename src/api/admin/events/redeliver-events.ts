import { Type } from 'typebox'
import { REDELIVERABLE } from '../../../domain/events/delivery.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { parseMoment } from '../../input.ts'
import { dataOf, moment, oneOf } from '../../resources/schema-kit.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

const bodySchema = Type.Object(
  {
    since: moment('Events created at or after this time.'),
    state: Type.Optional(
      oneOf(REDELIVERABLE, {
        description:
          'Only events whose latest delivery is in this state, or that no endpoint received ' +
          '(`not_posted`). Default: `exhausted`.',
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
        description: 'Redelivers every event created since `since` in `state`, like `redeliverEvent`.',
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
