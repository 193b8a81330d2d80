import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import { acceptMessage, MESSAGE_REFUSALS, newMessage } from '../../accept-message.ts'
import type { Api, ApiContext } from '../../context.ts'
import { findIdempotencyKey } from '../../input.ts'
import { acceptedSchema, idempotencyHeaderSchema, recipientSchema, textSchema } from '../../resources/message.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { parseTextOptions, textOptions } from './text-options.ts'

const bodySchema = Type.Object({ to: recipientSchema, text: textSchema, ...textOptions }, { title: 'TextToSend' })

export function sendText(api: Api, context: ApiContext): void {
  const { media, now } = context
  api.post(
    '/messages/text',
    {
      schema: {
        operationId: 'sendText',
        summary: 'Send a text message',
        description:
          'Accepts a text for a person or a group. 202 means that the message is stored and will be sent. Its state ' +
          'changes are reported as events.',
        tags: ['Messages'],
        headers: idempotencyHeaderSchema,
        body: bodySchema,
        response: { 202: dataOf(acceptedSchema, 'Accepted: the message is stored.') },
      },
      config: {
        scope: 'send',
        refusals: MESSAGE_REFUSALS,
      },
    },
    async (request, reply) => {
      const acceptedAt = now()
      const { to, text } = request.body
      const options = parseTextOptions(request.body, to, acceptedAt)
      if (options.extras?.preview?.image !== undefined && media === null) throw new Refusal('media_not_configured')
      const key = findIdempotencyKey(request.headers)
      const message = newMessage(request.instanceId, { to, text, ...options }, key, acceptedAt)
      const { id, replayed } = await acceptMessage(context, message, request, acceptedAt)
      request.messageId = id
      if (replayed) reply.header('idempotent-replayed', 'true')
      return reply.code(202).send({ data: { id, status: 'queued' } })
    },
  )
}
