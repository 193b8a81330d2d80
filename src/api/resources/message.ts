import { type Static, Type } from 'typebox'
import type { MessageExtras } from '../../domain/conversation.ts'
import type { MessageId } from '../../domain/ids.ts'
import { MEDIA_FORMS } from '../../domain/media.ts'
import {
  FAILURE_CODES,
  MESSAGE_STATES,
  type Message,
  type MessageFile,
  WAIT_REASONS,
  type Waiting,
} from '../../domain/message.ts'
import { mediaIdSchema } from './media.ts'
import { moment, nullable, oneOf, toIso, toIsoOrNull } from './schema-kit.ts'

export const MAX_TEXT_UNITS = 65_536

export const messageIdSchema = Type.String({
  description: 'The ID of the message in Pombal.',
  examples: ['msg_01kajxq8r2f0v7m3n5p9s1t4w6'],
})

export const recipientSchema = Type.String({
  description:
    'A number in E.164 form, digits only: country code, area code, number, no plus sign (7–15 digits, the first ' +
    '1–9). Or a group: `digits@g.us` or `digits-digits@g.us`. Or a person by LID address, as given by an event: ' +
    '`digits@lid`.',
  examples: ['5511987654321', '120363041234567890@g.us', '990000007654321@lid'],
})

export const textSchema = Type.String({
  minLength: 1,
  maxLength: MAX_TEXT_UNITS,
  description:
    'The text, including emojis and line breaks (`\\n`): 1 to 65,536 UTF-16 units, without U+0000 and without lone ' +
    'surrogates.',
  examples: ['Hello! 👋\nYour order is on its way.'],
})

export const idempotencyHeaderSchema = Type.Object({
  'X-Idempotency-Key': Type.Optional(
    Type.String({
      description:
        '1–255 visible ASCII characters, such as a UUID. For 24 h the same key with the same body returns the first ' +
        'message instead of sending another one.',
    }),
  ),
  'Idempotency-Key': Type.Optional(
    Type.String({ description: 'The same header under its common name. If both are sent, they must be equal.' }),
  ),
})

export const acceptedSchema = Type.Object(
  { id: messageIdSchema, status: oneOf(['queued'], { description: 'Always `queued` here.' }) },
  { title: 'AcceptedMessage' },
)

export const failureSchema = Type.Object(
  {
    code: oneOf(FAILURE_CODES, { description: 'Why the message or command failed.' }),
    message: Type.String({ description: 'The reason, for people.', examples: ['The number is not on WhatsApp.'] }),
  },
  { title: 'MessageFailure' },
)

/** The note of a file that is not shown as the caller requested. */
export const NOT_VOICE = 'WhatsApp plays only Ogg with Opus as a voice note, so the file is sent as audio.'

export const noteSchema = Type.String({
  description: 'Why the file is not shown in the form that `as` requested. Absent if it is.',
  examples: [NOT_VOICE],
})

const sentFileSchema = Type.Object(
  {
    id: mediaIdSchema,
    as: nullable(
      oneOf(MEDIA_FORMS, {
        description: 'How WhatsApp shows the file. Its type decides, so this is null until the type is known.',
      }),
    ),
    filename: nullable(Type.String()),
    status: Type.Optional(
      oneOf(['pending', 'failed'], {
        description: '`pending`: to be fetched from its URL. `failed`: it was not fetched. Otherwise absent.',
      }),
    ),
    note: Type.Optional(noteSchema),
  },
  { title: 'SentFile', description: 'The file that the message contains. Absent from a text.' },
)

const quoteSchema = Type.Object(
  {
    messageId: messageIdSchema,
    whatsappId: Type.String({ description: "WhatsApp's ID of the quoted message." }),
  },
  {
    title: 'SentQuote',
    description: 'The quoted message. Absent if there is none, or if the message goes out without the quotation.',
  },
)

export const linkPreviewSchema = Type.Object(
  {
    url: Type.String({
      minLength: 1,
      maxLength: 2_048,
      description:
        'A link that the text contains: http or https without a password, or without a scheme, such as ' +
        '`example.com/offer`.',
      examples: ['https://example.com/offer'],
    }),
    title: Type.String({ minLength: 1, maxLength: 300 }),
    description: Type.Optional(Type.String({ maxLength: 1_000 })),
    image: Type.Optional(
      Type.String({
        maxLength: 100,
        description: 'The ID of an uploaded or received JPEG, PNG, WebP or GIF. It is shown as a thumbnail.',
        examples: ['med_01kb3zq4m8a7c9x2e5g6h8j0k1'],
      }),
    ),
  },
  { title: 'LinkPreview', description: 'Shown with the text. Nothing is fetched.' },
)

/** Fields of messages in both directions. */
export const changeProperties = {
  editedAt: nullable(moment('When its text was last edited on WhatsApp. `text` is the new text.')),
  deletedAt: nullable(moment('When it was deleted for everyone on WhatsApp. Its text is erased.')),
}

export const messageProperties = {
  id: messageIdSchema,
  whatsappId: Type.String({
    description: "WhatsApp's ID of the message, as events about quotes, reactions and edits name it.",
  }),
  status: oneOf(MESSAGE_STATES, { description: 'The state of the message.' }),
  to: recipientSchema,
  text: Type.String({
    description: 'The text that was sent; for a file its caption, or an empty string.',
    examples: ['Hello!'],
  }),
  media: Type.Optional(sentFileSchema),
  quote: Type.Optional(quoteSchema),
  mentions: Type.Optional(
    Type.Unsafe<readonly string[] | 'all'>({
      anyOf: [{ type: 'array', items: { type: 'string' } }, { const: 'all' }],
      description: 'Who is mentioned. Absent if nobody is.',
    }),
  ),
  preview: Type.Optional(linkPreviewSchema),
  metadata: Type.Optional(Type.Object({}, { additionalProperties: true, description: 'As the caller sent it.' })),
  waitingFor: Type.Optional(
    oneOf(WAIT_REASONS, {
      description:
        'What a queued message waits for. `connection`: the link to WhatsApp. `order`: an earlier message of its ' +
        'chat. `schedule`: its `sendAt`. `pace`: the pace of the instance. `restriction`: WhatsApp does not let the ' +
        'number write to strangers. `media`: its file is being fetched or uploaded. Absent if it is being sent, ' +
        'or if the earlier message is not among the first 20,000 queued ones of the instance.',
    }),
  ),
  notBefore: Type.Optional(
    moment(
      'When a scheduled message is sent, or until when the pace or a restriction makes it wait. Otherwise absent.',
    ),
  ),
  createdAt: moment('When it was accepted.'),
  sentAt: nullable(moment("When WhatsApp's server acknowledged it.")),
  deliveredAt: nullable(moment('When it reached the recipient.')),
  readAt: nullable(moment('When it was opened.')),
  failedAt: nullable(moment('When it failed.')),
  ...changeProperties,
  error: nullable(failureSchema),
}

export const messageSchema = Type.Object(messageProperties, {
  title: 'Message',
  description: 'A message and its state. Times are null for states that it has not reached.',
})

export type MessageView = Static<typeof messageSchema>

/** `GET /v1/messages/{id}` for a sent message (contract §4). */
export const sentMessageSchema = Type.Object(
  { ...messageProperties, direction: oneOf(['out'], { description: 'From the instance.' }) },
  {
    title: 'SentMessage',
    description: 'A message from the instance and its state. Times are null for states that it has not reached.',
  },
)

/** What queued messages wait for, by their IDs. */
export type Waits = ReadonlyMap<MessageId, Waiting>

export function sentMessageView(message: Message, waits?: Waits): Static<typeof sentMessageSchema> {
  return { ...messageView(message, waits), direction: 'out' }
}

export function messageView(message: Message, waits?: Waits): MessageView {
  const waiting = waits?.get(message.id)
  return {
    id: message.id,
    whatsappId: message.whatsappId,
    status: message.state,
    to: message.to,
    text: message.text,
    ...(message.file && { media: fileView(message.file, message.state) }),
    ...(message.extras && extrasView(message.extras)),
    ...(message.notBefore !== undefined && { notBefore: toIso(message.notBefore) }),
    ...(waiting && { waitingFor: waiting.waitingFor }),
    ...(waiting?.notBefore && { notBefore: toIso(waiting.notBefore) }),
    createdAt: toIso(message.createdAt),
    sentAt: toIsoOrNull(message.sentAt),
    deliveredAt: toIsoOrNull(message.deliveredAt),
    readAt: toIsoOrNull(message.readAt),
    failedAt: toIsoOrNull(message.failedAt),
    editedAt: toIsoOrNull(message.editedAt),
    deletedAt: toIsoOrNull(message.deletedAt),
    error: message.failure,
  }
}

function extrasView({ quote, mentions, preview, metadata }: MessageExtras) {
  return {
    ...(quote && !quote.dropped && { quote: { messageId: quote.messageId, whatsappId: quote.whatsappId } }),
    ...(mentions && { mentions }),
    ...(preview && { preview }),
    ...(metadata && { metadata }),
  }
}

function fileView(
  { mediaId, form, filename, fetch, notVoice }: MessageFile,
  state: Message['state'],
): Static<typeof sentFileSchema> {
  // The file of a settled message is no longer fetched.
  const status = fetch && (state === 'queued' ? fetch : 'failed')
  return { id: mediaId, as: form, filename, ...(status && { status }), ...(notVoice && { note: NOT_VOICE }) }
}
