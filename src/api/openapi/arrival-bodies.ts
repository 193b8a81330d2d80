import { Type } from 'typebox'
import { changeBody, incomingBody, MAX_EVENT_TEXT_UNITS } from '../../domain/events/event.ts'
import { detailProperties, senderProperties } from '../resources/incoming-message.ts'
import { eventMediaSchema } from '../resources/media.ts'
import { messageIdSchema } from '../resources/message.ts'
import { nullable, oneOf } from '../resources/schema-kit.ts'
import { AT, type EventDoc, envelope, SUBJECT } from './event-doc.ts'

const textProperties = {
  text: Type.Optional(
    Type.String({
      maxLength: MAX_EVENT_TEXT_UNITS,
      description: `The text, the caption or the reaction; with the type \`other\` a name or caption. Absent if there is none. At most ${MAX_EVENT_TEXT_UNITS.toLocaleString('en')} UTF-16 units.`,
    }),
  ),
  truncated: Type.Optional(
    Type.Unsafe<true>({
      type: 'boolean',
      const: true,
      description: 'Present only if `text` was cut. `GET /v1/messages/{messageId}` returns the whole text.',
    }),
  ),
}

const receivedData = Type.Object(
  {
    id: Type.String({ description: "WhatsApp's ID of the message." }),
    from: senderProperties.from,
    addressing: Type.Optional(senderProperties.addressing),
    type: senderProperties.type,
    ...textProperties,
    group: Type.Optional(senderProperties.group),
    name: Type.Optional(senderProperties.name),
    messageId: messageIdSchema,
    chat: senderProperties.chat,
    phone: nullable(senderProperties.phone),
    lid: nullable(senderProperties.lid),
    username: nullable(senderProperties.username),
    media: Type.Optional(eventMediaSchema),
    ...detailProperties,
  },
  { additionalProperties: false },
)

const writtenData = Type.Object(
  {
    id: Type.String({ description: "WhatsApp's ID of the message." }),
    to: Type.String({
      description: 'The chat that it was written to: the same as `chat`.',
      examples: ['5511987654321'],
    }),
    type: senderProperties.type,
    ...textProperties,
    group: Type.Optional(senderProperties.group),
    messageId: messageIdSchema,
    chat: senderProperties.chat,
    phone: nullable(Type.String({ description: "The other side's number; null in a group, or if it is unknown." })),
    lid: nullable(Type.String({ description: "The other side's LID address; null in a group, or if it is unknown." })),
    username: nullable(Type.String({ description: "The other side's user name; null if it is unknown." })),
    media: Type.Optional(eventMediaSchema),
    ...detailProperties,
  },
  { additionalProperties: false },
)

export const metadataProperty = {
  metadata: Type.Optional(Type.Object({}, { additionalProperties: true, description: 'As the caller sent it.' })),
}

const changeProperties = {
  ...metadataProperty,
  id: Type.String({ description: "WhatsApp's ID of the message that was changed." }),
  messageId: nullable(Type.String({ description: 'The ID of the message in Pombal; null if it is unknown.' })),
  chat: senderProperties.chat,
  direction: oneOf(['in', 'out'], { description: '`out`: a message of the instance; `in`: one that it received.' }),
  by: nullable(
    Type.String({
      description:
        "Who changed it: a number or LID address. The instance's own number if the owner changed it on another device. Null for somebody with neither, such as an assistant.",
      examples: ['5511987654321'],
    }),
  ),
  group: Type.Optional(senderProperties.group),
}

export function changeDoc(change: 'edit' | 'delete', summary: string): EventDoc {
  const { instanceId, messageId } = SUBJECT
  const chat = '5511987654321'
  const about = { id: '3EB0A1B2C3D4E5F60718', target: '3EB0C431C26A1916E07E', from: chat, chat, lid: null }
  const text = change === 'edit' ? { text: 'Thank you both!' } : {}
  const arrived = { ...about, change, ...text, username: null, ofOwn: false, sentAt: AT }
  const data = { ...changeProperties, ...(change === 'edit' && textProperties) }
  return {
    summary,
    schema: envelope(
      change === 'edit' ? 'message.edited' : 'message.deleted',
      Type.Object(data, { additionalProperties: false }),
    ),
    example: JSON.parse(changeBody(instanceId, { messageId, direction: 'in' }, arrived)),
  }
}

export const RECEIVED_DOC: EventDoc = {
  summary: 'The instance received a message',
  schema: envelope('message.received', receivedData),
  example: JSON.parse(
    incomingBody(SUBJECT.instanceId, SUBJECT.messageId, {
      id: '3EB0C431C26A1916E07E',
      from: '5511987654321',
      type: 'text',
      text: 'Thank you!',
      name: 'Ana',
      chat: '5511987654321',
      lid: '990000007654321@lid',
      username: null,
      sentAt: AT,
    }),
  ),
}

export const WRITTEN_DOC: EventDoc = {
  summary: 'The owner wrote a message on the phone or another device',
  schema: envelope('message.written', writtenData),
  example: JSON.parse(
    incomingBody(SUBJECT.instanceId, SUBJECT.messageId, {
      id: '3EB0C431C26A1916E07E',
      from: '5511900000000',
      written: true,
      type: 'text',
      text: 'We answered on the phone.',
      chat: '5511987654321',
      lid: '990000007654321@lid',
      username: null,
      sentAt: AT,
    }),
  ),
}
