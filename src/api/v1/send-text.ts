import { hash } from 'node:crypto'
import { Type } from 'typebox'
import { newMessageId, newWhatsappId } from '../../domain/ids.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { AcceptOutcome } from '../../store/store.ts'
import type { Api, ApiContext } from '../context.ts'
import { checkRecipient, checkText, parseIdempotencyKey } from '../input.ts'
import { messageIdSchema, recipientSchema, textSchema } from '../resources/message.ts'
import { dataOf, oneOf } from '../resources/schema-kit.ts'

const bodySchema = Type.Object({ to: recipientSchema, text: textSchema }, { title: 'TextToSend' })

const acceptedSchema = Type.Object(
  { id: messageIdSchema, status: oneOf(['queued'], { description: 'Always `queued` here.' }) },
  { title: 'AcceptedMessage' },
)

const headersSchema = Type.Object({
  'X-Idempotency-Key': Type.Optional(
    Type.String({
      description:
        '1–255 visible ASCII characters, such as a UUID. For 24 h the same key with the same body answers the first ' +
        'message again instead of sending another.',
    }),
  ),
})

export function sendText(api: Api, { store, now }: ApiContext): void {
  api.post(
    '/messages/text',
    {
      schema: {
        operationId: 'sendText',
        summary: 'Send a text message',
        description:
          'Accepts a text for a number or a group. 202 means that the message is stored and will be sent; what becomes ' +
          "of it is posted to the instance's webhook.",
        tags: ['Messages'],
        headers: headersSchema,
        body: bodySchema,
        response: { 202: dataOf(acceptedSchema, 'Accepted: the message is stored.') },
      },
      config: {
        refusals: ['invalid_request', 'invalid_phone_number', 'instance_not_connected', 'idempotency_key_reused'],
      },
    },
    async (request, reply) => {
      const { to, text } = request.body
      checkRecipient(to)
      checkText(text)
      const key = parseIdempotencyKey(request.headers['x-idempotency-key'])
      const acceptedAt = now()
      const outcome = await store.messages.accept(
        {
          id: newMessageId(acceptedAt),
          instanceId: request.instanceId,
          to,
          text,
          whatsappId: newWhatsappId(),
          idempotency: key === undefined ? undefined : { key, digest: contentDigest(to, text) },
        },
        acceptedAt,
      )
      const id = acceptedId(outcome)
      if (outcome.kind === 'replayed') reply.header('idempotent-replayed', 'true')
      return reply.code(202).send({ data: { id, status: 'queued' } })
    },
  )
}

/** Two bodies are the same when `to` and `text` are, whatever else stands in them. */
function contentDigest(to: string, text: string): Buffer {
  return hash('sha256', JSON.stringify([to, text]), 'buffer')
}

function acceptedId(outcome: AcceptOutcome): string {
  switch (outcome.kind) {
    case 'accepted':
    case 'replayed':
      return outcome.id
    case 'key_reused':
      throw new Refusal('idempotency_key_reused')
    case 'not_connected':
      throw new Refusal('instance_not_connected')
    case 'no_instance':
      throw new Refusal('invalid_token')
  }
}
