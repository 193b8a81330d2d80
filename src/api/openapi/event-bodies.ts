import { Type } from 'typebox'
import { CONNECTION_CAUSES, type ConnectionCause } from '../../domain/connection/connection.ts'
import { COMMAND_KINDS } from '../../domain/conversation.ts'
import {
  commandBody,
  connectionBody,
  EVENT_KINDS,
  type EventKind,
  type EventMedia,
  failureBody,
  type GroupEventKind,
  type InstanceEventKind,
  type MediaEventKind,
  mediaBody,
  progressBody,
  TEST_EVENT,
  testBody,
} from '../../domain/events/event.ts'
import type { ReceivingFailure } from '../../domain/media.ts'
import { type MessageFailure, messageFailure } from '../../domain/message.ts'
import type { DocumentedSettings } from '../context.ts'
import { commandIdSchema, reactionEmojiSchema } from '../resources/conversation/command.ts'
import { senderProperties } from '../resources/incoming-message.ts'
import { eventMediaSchema } from '../resources/media.ts'
import { failureSchema, messageIdSchema, recipientSchema } from '../resources/message.ts'
import { moment, nullable, oneOf } from '../resources/schema-kit.ts'
import { changeDoc, metadataProperty, RECEIVED_DOC, WRITTEN_DOC } from './arrival-bodies.ts'
import { AT, type EventDoc, envelope, SUBJECT } from './event-doc.ts'
import { GROUP_DATA, groupExample } from './group-events.ts'
import { delaysInWords, durationInWords } from './in-words.ts'

function statusData(status: string, more: Record<string, typeof failureSchema> = {}) {
  return Type.Object(
    {
      id: messageIdSchema,
      to: recipientSchema,
      status: Type.Unsafe<string>({ type: 'string', const: status }),
      ...more,
      ...echoProperties,
    },
    { additionalProperties: false },
  )
}

const echoProperties = {
  ...metadataProperty,
  quoted: Type.Optional(
    Type.Unsafe<false>({
      type: 'boolean',
      const: false,
      description: 'Present if the message went out without its quote.',
    }),
  ),
}

function commandDoc(summary: string, failure: MessageFailure | null): EventDoc {
  const status = failure === null ? 'done' : 'failed'
  const { instanceId, messageId } = SUBJECT
  const command = { instanceId, messageId: 'cmd_01kajxq9a3h4j5k6m7n8p9q0r1' }
  const data = Type.Object(
    {
      id: commandIdSchema,
      command: oneOf(COMMAND_KINDS, { description: 'What was to be done.' }),
      messageId: messageIdSchema,
      emoji: Type.Optional(reactionEmojiSchema),
      status: Type.Unsafe<string>({ type: 'string', const: status }),
      ...(failure && { error: failureSchema }),
    },
    { additionalProperties: false },
  )
  const body = commandBody(command, { kind: 'reaction', messageId, emoji: '👍' }, failure, AT)
  return { summary, schema: envelope(`command.${status}`, data), example: JSON.parse(body) }
}

function progressDoc(reached: 'sent' | 'delivered' | 'read', summary: string): EventDoc {
  const body = progressBody(SUBJECT, reached, AT)
  return { summary, schema: envelope(`message.${reached}`, statusData(reached)), example: JSON.parse(body) }
}

const connectionData = Type.Object(
  {
    cause: nullable(oneOf(CONNECTION_CAUSES, { description: 'The stable code of `reason`.' })),
    reason: Type.String({ description: 'What happened and what to do, in words.' }),
    phone: nullable(Type.String({ description: 'The number that is linked, or was until now.' })),
  },
  { additionalProperties: false },
)

function connectionDoc(kind: InstanceEventKind, summary: string, cause: ConnectionCause, reason: string): EventDoc {
  const body = connectionBody(kind, SUBJECT.instanceId, { cause, reason, phone: '5511900000000' }, AT)
  return { summary, schema: envelope(kind, connectionData), example: JSON.parse(body) }
}

const mediaData = Type.Object(
  {
    id: Type.String({ description: "WhatsApp's ID of the message." }),
    messageId: messageIdSchema,
    chat: senderProperties.chat,
    media: eventMediaSchema,
  },
  { additionalProperties: false },
)

const MEDIA: EventMedia = {
  id: 'med_01kb3zq4m8a7c9x2e5g6h8j0k1',
  facts: {
    mimetype: 'image/jpeg',
    size: 148_213,
    sha256: Buffer.from('9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', 'hex'),
    filename: null,
    seconds: null,
    width: 1_600,
    height: 1_200,
  },
  failure: null,
}

function mediaDoc(summary: string, failure: ReceivingFailure | null): EventDoc {
  const message = { id: '3EB0C431C26A1916E07E', messageId: SUBJECT.messageId, chat: '5511987654321' }
  const body = mediaBody(SUBJECT.instanceId, message, { ...MEDIA, failure }, AT)
  const kind: MediaEventKind = failure === null ? 'media.ready' : 'media.failed'
  return { summary, schema: envelope(kind, mediaData), example: JSON.parse(body) }
}

function groupDoc(kind: GroupEventKind, summary: string): EventDoc {
  return { summary, schema: envelope(kind, GROUP_DATA[kind]), example: groupExample(kind, SUBJECT.instanceId, AT) }
}

const EVENT_DOCS: Readonly<Record<EventKind, EventDoc>> = {
  'message.received': RECEIVED_DOC,
  'message.written': WRITTEN_DOC,
  'message.edited': changeDoc('edit', 'A message was edited on WhatsApp'),
  'message.deleted': changeDoc('delete', 'A message was deleted for everyone on WhatsApp'),
  'message.sent': progressDoc('sent', "WhatsApp's server has the message"),
  'message.delivered': progressDoc('delivered', 'The message reached the recipient'),
  'message.read': progressDoc('read', 'The message was opened'),
  'message.failed': {
    summary: 'The message failed; no further event follows',
    schema: envelope('message.failed', statusData('failed', { error: failureSchema })),
    example: JSON.parse(failureBody(SUBJECT, messageFailure('recipient_not_on_whatsapp'), AT)),
  },
  'media.ready': mediaDoc('The file of a received message can be downloaded', null),
  'media.failed': mediaDoc('The file of a received message could not be fetched', 'media_unavailable'),
  'command.done': commandDoc('A reaction, edit, deletion or read mark was executed', null),
  'command.failed': commandDoc('A reaction, edit, deletion or read mark failed', messageFailure('message_failed')),
  'instance.linking': connectionDoc(
    'instance.linking',
    'A QR code or pairing code is available',
    'scan_qr_code',
    'Scan the QR code with WhatsApp on the phone.',
  ),
  'instance.connected': connectionDoc(
    'instance.connected',
    'The number is connected, for the first time or after a problem that was reported',
    'connected',
    'Connected to WhatsApp.',
  ),
  'instance.restricted': connectionDoc(
    'instance.restricted',
    'WhatsApp does not let the number write to new recipients',
    'restricted',
    'Connected, but WhatsApp does not let the number write to new recipients until 2026-11-22 12:00 UTC.',
  ),
  'instance.disconnected': connectionDoc(
    'instance.disconnected',
    'The number has had no connection for 5 minutes; the service keeps trying',
    'unreachable',
    'WhatsApp could not be reached (ECONNREFUSED). Trying again in 60 s.',
  ),
  'instance.stopped': connectionDoc(
    'instance.stopped',
    'The service no longer tries to connect; a person has to act',
    'banned',
    'WhatsApp refused the number, which may be banned. Check the phone, then connect again.',
  ),
  'instance.logged_out': connectionDoc(
    'instance.logged_out',
    'The linked number was removed; queued messages fail',
    'logged_out_by_phone',
    'Logged out from the phone.',
  ),
  'group.joined': groupDoc('group.joined', 'The number has become a member of a group'),
  'group.changed': groupDoc('group.changed', 'The name, the members or a setting of a group has changed'),
  'group.left': groupDoc('group.left', 'The number is not a member of the group any more'),
}

interface HeaderDoc {
  name: string
  description: string
  example: string
  required?: false
}

const createHeaders = (attempts: number): readonly HeaderDoc[] => [
  {
    name: 'X-Service-Signature',
    description:
      '`sha256=` and the lower-case hex of HMAC-SHA256 over the raw body. The key is the whole secret string in UTF-8.',
    example: 'sha256=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd',
  },
  { name: 'X-Service-Event', description: 'The event kind.', example: 'message.sent' },
  { name: 'X-Service-Attempt', description: `The attempt, from 1 to ${attempts}.`, example: '1' },
  {
    name: 'webhook-id',
    description: "The event's ID, the same in every attempt. Use it to detect duplicates.",
    example: 'evt_01kajxq8r2f0v7m3n5p9s1t4w6',
  },
  {
    name: 'webhook-timestamp',
    description: 'When the attempt was made, in seconds since 1970.',
    example: '1795262400',
  },
  {
    name: 'webhook-signature',
    description:
      'As Standard Webhooks defines it: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`. For 24 h after ' +
      'the secret was replaced, a signature with the old secret follows after a space.',
    example: 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  },
  { name: 'User-Agent', description: '`Pombal/` and the version.', example: 'Pombal/1.0.0' },
  {
    name: 'traceparent',
    description: 'Present only for a message or command whose call had a trace context (W3C Trace Context).',
    example: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    required: false,
  },
]

const TEST_DOC: EventDoc = {
  summary: 'A test that somebody requested; it is posted once and not logged',
  schema: Type.Object(
    {
      event: Type.Unsafe<string>({ type: 'string', const: TEST_EVENT }),
      instanceId: nullable(Type.String({ description: 'The instance; null if an operator endpoint is tested.' })),
      timestamp: moment('When the test was requested.'),
      data: Type.Object({}, { additionalProperties: false }),
    },
    { title: 'EventWebhookTest', additionalProperties: false },
  ),
  example: JSON.parse(testBody(SUBJECT.instanceId, AT)),
}

/** The `webhooks` section: the requests that the service posts to an instance's endpoints. */
export function webhookOperations(settings: DocumentedSettings): Record<string, object> {
  const docs = [...EVENT_KINDS.map(kind => [kind, EVENT_DOCS[kind]] as const), [TEST_EVENT, TEST_DOC] as const]
  return Object.fromEntries(docs.map(([kind, doc]) => [kind, { post: webhookOperation(kind, doc, settings) }]))
}

function webhookOperation(
  kind: EventKind | typeof TEST_EVENT,
  { summary, schema, example }: EventDoc,
  { webhookTimeoutMs, webhookRetryDelaysMs }: DocumentedSettings,
) {
  const attempts = webhookRetryDelaysMs.length + 1
  return {
    operationId: kind.replaceAll(/[._](\w)/g, (_, letter: string) => letter.toUpperCase()),
    summary,
    description:
      'Posted to the URL that was in force when the event was created. A status event waits until the previous ' +
      'event of its message has been delivered or is exhausted. Any 2xx within ' +
      `${durationInWords(webhookTimeoutMs)} is success. The retries start ${delaysInWords(webhookRetryDelaysMs)} ` +
      'after the end of the attempt before them. Redirects are not followed. An event can arrive more than once, ' +
      'with the same `webhook-id`.',
    tags: ['Events'],
    security: [],
    parameters: createHeaders(attempts).map(({ name, description, example: value, required = true }) => ({
      in: 'header',
      name,
      required,
      description,
      schema: { type: 'string' },
      example: value,
    })),
    requestBody: { required: true, content: { 'application/json': { schema, example } } },
    responses: {
      '2XX': { description: 'Delivered.' },
      default: { description: `Failed: posted again, up to ${attempts} attempts in all.` },
    },
  }
}
