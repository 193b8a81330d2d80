import { type Static, Type } from 'typebox'
import { showDetails } from '../../domain/events/event.ts'
import { ADDRESSINGS, INCOMING_TYPES, phoneOf } from '../../domain/incoming-message.ts'
import type { StoredIncoming } from '../../store/messages/messages.ts'
import { receivedMediaSchema, receivedMediaView } from './media.ts'
import { changeProperties, messageIdSchema } from './message.ts'
import { moment, nullable, oneOf, toIso, toIsoOrNull } from './schema-kit.ts'

/** The sender and chat of an incoming message, in its event and in `GET /v1/messages/{id}`. */
export const senderProperties = {
  from: Type.String({
    description: "The sender's number, digits only. With `addressing`, the digits of the sender's other address.",
    examples: ['5511987654321'],
  }),
  addressing: oneOf(ADDRESSINGS, {
    description:
      'Present only if the number is unknown. `lid`: `from` holds the digits of a LID. `other`: neither number nor ' +
      'LID.',
  }),
  type: oneOf(INCOMING_TYPES, { description: 'The type of the message. A choice from buttons or a list is a `text`.' }),
  group: Type.String({ description: "The group's JID.", examples: ['120363041234567890@g.us'] }),
  name: Type.String({ description: "The sender's push name, if known.", examples: ['Ana'] }),
  chat: Type.String({
    description:
      'The chat: the group, or the sender by number if known, else by LID address. Valid as `to`, except `0`, ' +
      "WhatsApp's own account, and `digits@bot`, an assistant.",
    examples: ['5511987654321', '120363041234567890@g.us', '990000007654321@lid'],
  }),
  phone: Type.String({ description: "The sender's number, digits only; null if unknown." }),
  lid: Type.String({
    description: "The sender's LID address; null if unknown.",
    examples: ['990000007654321@lid'],
  }),
  username: Type.String({ description: "The sender's user name; null if unknown." }),
}

const referenceProperties = {
  messageId: nullable(Type.String({ description: 'The message in Pombal; null if it is unknown or was erased.' })),
  whatsappId: Type.String({ description: "WhatsApp's ID of the message." }),
}

/** Each is absent if the message has none. */
export const detailProperties = {
  quote: Type.Optional(
    Type.Object(
      {
        ...referenceProperties,
        from: nullable(Type.String({ description: 'The number or LID address of its sender.' })),
        text: nullable(Type.String({ description: 'The first 1,000 units of its text, as the sender quotes it.' })),
      },
      { title: 'Quote', description: 'The message that this message answers.' },
    ),
  ),
  mentions: Type.Optional(Type.Array(Type.String(), { description: 'Who is mentioned: numbers, or LID addresses.' })),
  reaction: Type.Optional(
    Type.Object(
      { ...referenceProperties, emoji: nullable(Type.String({ description: 'Null: the reaction was removed.' })) },
      { title: 'ReceivedReaction', description: 'The message that the reaction is about.' },
    ),
  ),
  location: Type.Optional(
    Type.Object(
      {
        latitude: Type.Number(),
        longitude: Type.Number(),
        name: Type.Optional(Type.String()),
        address: Type.Optional(Type.String()),
      },
      { title: 'Location' },
    ),
  ),
  contacts: Type.Optional(
    Type.Array(
      Type.Object({ name: nullable(Type.String()), vcard: Type.String({ description: 'At most 4,096 units.' }) }),
      { description: 'The contact cards, at most 20.' },
    ),
  ),
  poll: Type.Optional(
    Type.Object(
      {
        question: Type.String(),
        options: Type.Array(Type.String()),
        selectable: nullable(Type.Integer({ description: 'How many options may be chosen; null: any number.' })),
      },
      { title: 'Poll' },
    ),
  ),
  referral: Type.Optional(
    Type.Object(
      {
        sourceId: nullable(Type.String({ description: 'The ID of the advertisement.' })),
        clickId: nullable(Type.String({ description: 'The ID of the click on it.' })),
        headline: nullable(Type.String()),
        url: nullable(Type.String()),
      },
      { title: 'Referral', description: 'The advertisement that the sender answers.' },
    ),
  ),
  viewOnce: Type.Optional(
    Type.Unsafe<true>({
      type: 'boolean',
      const: true,
      description: 'The recipient may open it once. If WhatsApp withholds the content, the type is `other`.',
    }),
  ),
}

/** The fields that received messages share with those written on another device. */
const deliveredProperties = {
  id: messageIdSchema,
  whatsappId: Type.String({ description: "WhatsApp's ID of the message, which is `data.id` in its event." }),
  chat: senderProperties.chat,
  type: senderProperties.type,
  group: nullable(senderProperties.group),
  text: nullable(Type.String({ description: 'The whole text, the caption or the reaction; null if there is none.' })),
  media: Type.Optional(receivedMediaSchema),
  ...detailProperties,
  sentAt: moment('When it was sent, as reported by WhatsApp.'),
  createdAt: moment('When it was recorded.'),
  ...changeProperties,
}

/** `GET /v1/messages/{id}` for a received message (contract §4). */
export const incomingMessageSchema = Type.Object(
  {
    ...deliveredProperties,
    direction: oneOf(['in'], { description: 'To the instance.' }),
    status: oneOf(['received'], { description: 'Always `received`.' }),
    ...senderProperties,
    addressing: nullable(senderProperties.addressing),
    group: nullable(senderProperties.group),
    name: nullable(senderProperties.name),
    phone: nullable(senderProperties.phone),
    lid: nullable(senderProperties.lid),
    username: nullable(senderProperties.username),
  },
  { title: 'ReceivedMessage', description: 'A message to the instance.' },
)

export const writtenMessageSchema = Type.Object(
  {
    ...deliveredProperties,
    direction: oneOf(['out'], { description: 'From the instance.' }),
    status: oneOf(['written'], { description: 'Always `written`.' }),
    to: Type.String({ description: 'The chat that it was written to.', examples: ['5511987654321'] }),
  },
  { title: 'WrittenMessage', description: 'A message that the owner wrote on the phone or another device.' },
)

function incomingMessageView(message: StoredIncoming): Static<typeof incomingMessageSchema> {
  const { from, addressing, name, lid, username } = message
  return {
    ...deliveredView(message),
    direction: 'in',
    status: 'received',
    from,
    addressing: addressing ?? null,
    name: name ?? null,
    phone: phoneOf(message),
    lid,
    username,
  }
}

function writtenMessageView(message: StoredIncoming): Static<typeof writtenMessageSchema> {
  return { ...deliveredView(message), direction: 'out', status: 'written', to: message.chat }
}

/** A message that WhatsApp delivered: a received one, or one that the owner wrote on another device. */
export function deliveredMessageView(message: StoredIncoming) {
  return message.written ? writtenMessageView(message) : incomingMessageView(message)
}

function deliveredView(message: StoredIncoming) {
  const { messageId, id, group, chat, type, text, media, sentAt, createdAt, editedAt, deletedAt } = message
  return {
    id: messageId,
    whatsappId: id,
    chat,
    group: group ?? null,
    type,
    text: text ?? null,
    ...(media && { media: receivedMediaView(media) }),
    ...(message.details && showDetails(message.details)),
    sentAt: toIso(sentAt),
    createdAt: toIso(createdAt),
    editedAt: toIsoOrNull(editedAt),
    deletedAt: toIsoOrNull(deletedAt),
  }
}
