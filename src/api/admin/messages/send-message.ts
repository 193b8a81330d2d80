import { Type } from 'typebox'
import { cleanFilename, MAX_FILENAME_LENGTH, MEDIA_FORMS } from '../../../domain/media.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { acceptMessage, MESSAGE_REFUSALS, newMessage } from '../../accept-message.ts'
import type { Api, ApiContext } from '../../context.ts'
import { invalid } from '../../http/error-handler.ts'
import { findIdempotencyKey } from '../../input.ts'
import { fileOf, namedFileSchema } from '../../media/named-file.ts'
import { acceptedSchema, idempotencyHeaderSchema, recipientSchema, textSchema } from '../../resources/message.ts'
import { dataOf, oneOf } from '../../resources/schema-kit.ts'
import { parseTextOptions, textOptions } from '../../v1/messages/text-options.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

const bodySchema = Type.Object(
  {
    to: recipientSchema,
    text: Type.Optional(textSchema),
    media: Type.Optional(namedFileSchema),
    as: Type.Optional(oneOf(MEDIA_FORMS, { description: 'Like `as` of `sendMedia`.' })),
    filename: Type.Optional(
      Type.String({ maxLength: MAX_FILENAME_LENGTH, description: 'Like `filename` of `sendMedia`.' }),
    ),
    ...textOptions,
    idempotencyKey: Type.Optional(
      Type.String({ description: 'Like the header `X-Idempotency-Key`. If both are sent, they must be equal.' }),
    ),
  },
  { title: 'MessageToSendByHand', description: 'A text, or a file whose caption is `text`.' },
)

export function sendMessage(api: Api, context: ApiContext): void {
  const { store, media, now } = context
  api.post(
    '/instances/:id/messages',
    {
      schema: {
        operationId: 'sendMessage',
        summary: 'Send a message by hand',
        description:
          "Like `sendText` or, with `media`, `sendMedia`, but without the instance's token and outside its rate limit.",
        tags: ['Message log'],
        headers: idempotencyHeaderSchema,
        params: instanceParams,
        body: bodySchema,
        response: { 202: dataOf(acceptedSchema, 'Accepted: the message is stored.') },
      },
      config: {
        refusals: ['instance_not_found', ...MESSAGE_REFUSALS],
      },
    },
    async (request, reply) => {
      const instance = await getInstanceOrRefuse(store, request.params.id)
      const { to, text = '', media: named, as: form = null, filename, preview } = request.body
      if (named === undefined && text === '') throw invalid('text', 'is required without media')
      if (named !== undefined && preview) throw invalid('preview', 'must not be sent with media')
      const key = findIdempotencyKey(request.headers, request.body.idempotencyKey)
      const acceptedAt = now()
      const options = parseTextOptions(request.body, to, acceptedAt)
      const needsFiles = named !== undefined || options.extras?.preview?.image !== undefined
      if (needsFiles && media === null) throw new Refusal('media_not_configured')
      const name = filename === undefined ? null : cleanFilename(filename)
      const file = named !== undefined && media !== null && { ...fileOf(named, media, acceptedAt, name), form }
      const content = { to, text, ...(file && { file }), ...options }
      const message = newMessage(instance.id, content, key, acceptedAt)
      const { id, replayed } = await acceptMessage(context, message, request, acceptedAt)
      request.messageId = id
      if (replayed) reply.header('idempotent-replayed', 'true')
      return reply.code(202).send({ data: { id, status: 'queued' } })
    },
  )
}
