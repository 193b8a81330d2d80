import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { parseMoment } from '../../input.ts'
import { dataOf, moment, oneOf } from '../../resources/schema-kit.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

const bodySchema = Type.Object(
  {
    since: moment('Events made at or after this moment.'),
    state: Type.Optional(
      oneOf(['delivered', 'exhausted'], {
        description: 'Only those whose latest delivery is in this state; `exhausted` unless said otherwise.',
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
          'Every event made since a moment whose latest delivery ended so, as `redeliverEvent` does for one.',
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
