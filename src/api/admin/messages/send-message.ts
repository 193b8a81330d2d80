import { Type } from 'typebox'
import { acceptMessage, composeMessage } from '../../accept-message.ts'
import type { Api, ApiContext } from '../../context.ts'
import { parseIdempotencyKey } from '../../input.ts'
import { acceptedSchema, recipientSchema, textSchema } from '../../resources/message.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

const bodySchema = Type.Object(
  {
    to: recipientSchema,
    text: textSchema,
    idempotencyKey: Type.Optional(Type.String({ description: 'Like `X-Idempotency-Key` of `sendText`.' })),
  },
  { title: 'TextToSendByHand' },
)

export function sendMessage(api: Api, { store, now }: ApiContext): void {
  api.post(
    '/instances/:id/messages',
    {
      schema: {
        operationId: 'sendMessage',
        summary: 'Send a text message as the administrator',
        description: "Like `sendText`, but without the instance's token and outside its rate limit.",
        tags: ['Message log'],
        params: instanceParams,
        body: bodySchema,
        response: { 202: dataOf(acceptedSchema, 'Accepted: the message is stored.') },
      },
      config: {
        refusals: [
          'instance_not_found',
          'invalid_request',
          'invalid_phone_number',
          'instance_not_connected',
          'idempotency_key_reused',
        ],
      },
    },
    async (request, reply) => {
      const instance = await getInstanceOrRefuse(store, request.params.id)
      const key = parseIdempotencyKey(request.body.idempotencyKey)
      const acceptedAt = now()
      const message = composeMessage(request.body, acceptedAt)
      const { id } = await acceptMessage(store, instance.id, message, key, acceptedAt)
      return reply.code(202).send({ data: { id, status: 'queued' } })
    },
  )
}
