import { Type } from 'typebox'
import { cleanFilename, MAX_FILENAME_LENGTH, MEDIA_FORMS } from '../../../domain/media.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { acceptMessage, MESSAGE_REFUSALS, newMessage } from '../../accept-message.ts'
import type { Api, ApiContext } from '../../context.ts'
import { findIdempotencyKey } from '../../input.ts'
import { fileOf, namedFileSchema } from '../../media/named-file.ts'
import {
  acceptedSchema,
  idempotencyHeaderSchema,
  MAX_TEXT_UNITS,
  NOT_VOICE,
  noteSchema,
  recipientSchema,
} from '../../resources/message.ts'
import { dataOf, oneOf } from '../../resources/schema-kit.ts'
import { parseTextOptions, textOptions } from './text-options.ts'

const answerSchema = Type.Object(
  { ...acceptedSchema.properties, note: Type.Optional(noteSchema) },
  { title: 'AcceptedFile' },
)

const { preview: _, ...fileOptions } = textOptions

const bodySchema = Type.Object(
  {
    to: recipientSchema,
    media: namedFileSchema,
    as: Type.Optional(
      oneOf(MEDIA_FORMS, {
        description:
          'How WhatsApp shows the file. By default JPEG and PNG are sent as `image`, MP4 and 3GPP as `video`, audio ' +
          'as `audio`, and everything else as `document`. `sticker` needs WebP. `voice` needs Ogg with Opus: other ' +
          'audio is sent as `audio`.',
      }),
    ),
    caption: Type.Optional(
      Type.String({ maxLength: MAX_TEXT_UNITS, description: 'A text below an image, a video or a document.' }),
    ),
    filename: Type.Optional(
      Type.String({
        maxLength: MAX_FILENAME_LENGTH,
        description: 'The name of a document. By default, the stored name of the file, or the last part of its URL.',
      }),
    ),
    ...fileOptions,
  },
  { title: 'FileToSend' },
)

export function sendMedia(api: Api, context: ApiContext): void {
  const { store, media, now } = context
  api.post(
    '/messages/media',
    {
      schema: {
        operationId: 'sendMedia',
        summary: 'Send a file',
        description:
          'Accepts a message with a file that was uploaded or received before, or that is fetched from a URL. 202 ' +
          'means that the message is stored and will be sent. Its state changes are reported as events, like those ' +
          'of a text.',
        tags: ['Messages'],
        headers: idempotencyHeaderSchema,
        body: bodySchema,
        response: { 202: dataOf(answerSchema, 'Accepted: the message is stored.') },
      },
      config: {
        scope: 'send',
        refusals: MESSAGE_REFUSALS,
      },
    },
    async (request, reply) => {
      if (media === null) throw new Refusal('media_not_configured')
      const { to, media: named, as: form = null, caption: text = '', filename } = request.body
      const acceptedAt = now()
      const name = filename === undefined ? null : cleanFilename(filename)
      const file = { ...fileOf(named, media, acceptedAt, name), form }
      const options = parseTextOptions({ ...request.body, preview: false }, to, acceptedAt)
      const key = findIdempotencyKey(request.headers)
      const { instanceId } = request
      const message = newMessage(instanceId, { to, text, file, ...options }, key, acceptedAt)
      const { id, replayed } = await acceptMessage(context, message, request, acceptedAt)
      request.messageId = id
      const sent = form === 'voice' ? await store.messages.find(instanceId, id) : null
      const note = sent?.file?.notVoice && { note: NOT_VOICE }
      if (replayed) reply.header('idempotent-replayed', 'true')
      return reply.code(202).send({ data: { id, status: 'queued', ...note } })
    },
  )
}
