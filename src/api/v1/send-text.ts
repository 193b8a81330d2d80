import { Type } from 'typebox'
import { acceptMessage, composeMessage } from '../accept-message.ts'
import type { Api, ApiContext } from '../context.ts'
import { parseIdempotencyKey } from '../input.ts'
import { acceptedSchema, idempotencyHeaderSchema, recipientSchema, textSchema } from '../resources/message.ts'
import { dataOf } from '../resources/schema-kit.ts'

const bodySchema = Type.Object({ to: recipientSchema, text: textSchema }, { title: 'TextToSend' })

export function sendText(api: Api, { store, now }: ApiContext): void {
  api.post(
    '/messages/text',
    {
      schema: {
        operationId: 'sendText',
        summary: 'Send a text message',
        description:
          'Accepts a text for a number or a group. 202 means that the message is stored and will be sent. Its state ' +
          "changes are posted to the instance's webhook.",
        tags: ['Messages'],
        headers: idempotencyHeaderSchema,
        body: bodySchema,
        response: { 202: dataOf(acceptedSchema, 'Accepted: the message is stored.') },
      },
      config: {
        scope: 'send',
        refusals: ['invalid_request', 'invalid_phone_number', 'instance_not_connected', 'idempotency_key_reused'],
      },
    },
    async (request, reply) => {
      const acceptedAt = now()
      const message = composeMessage(request.body, acceptedAt)
      const key = parseIdempotencyKey(request.headers['x-idempotency-key'])
      const { id, replayed } = await acceptMessage(store, request.instanceId, message, key, acceptedAt)
      if (replayed) reply.header('idempotent-replayed', 'true')
      return reply.code(202).send({ data: { id, status: 'queued' } })
    },
  )
}
