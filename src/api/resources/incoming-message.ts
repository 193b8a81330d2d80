import { type Static, Type } from 'typebox'
import { ADDRESSINGS, INCOMING_TYPES, phoneOf } from '../../domain/event.ts'
import type { StoredIncoming } from '../../store/messages/messages.ts'
import { messageIdSchema } from './message.ts'
import { moment, nullable, oneOf, toIso } from './schema-kit.ts'

/** Who wrote an incoming message and where: the same in its event and by its id. */
export const senderProperties = {
  from: Type.String({
    description: "The sender's number, digits only; where `addressing` is there, the digits of its other address.",
    examples: ['5511987654321'],
  }),
  addressing: oneOf(ADDRESSINGS, {
    description: 'Only where the number cannot be known. `lid`: `from` holds the digits of a LID; `other`: of neither.',
  }),
  type: oneOf(INCOMING_TYPES, { description: 'What was sent.' }),
  group: Type.String({ description: 'The group it came in, as a JID.', examples: ['120363041234567890@g.us'] }),
  name: Type.String({ description: 'The push name, when known.', examples: ['Ana'] }),
  chat: Type.String({
    description: 'The chat: the group, or the sender by number where that is known, else by LID address.',
    examples: ['5511987654321', '120363041234567890@g.us', '990000007654321@lid'],
  }),
  phone: Type.String({ description: "The sender's number, digits only; null where it is not known." }),
  lid: Type.String({
    description: "The sender's LID address; null where it is not known.",
    examples: ['990000007654321@lid'],
  }),
  username: Type.String({ description: "The sender's user name; null where WhatsApp does not say it." }),
}

/** `GET /v1/messages/{id}` of a message that came in (extensions §1). */
export const incomingMessageSchema = Type.Object(
  {
    id: messageIdSchema,
    direction: oneOf(['in'], { description: 'To the instance.' }),
    status: oneOf(['received'], { description: 'Always `received`.' }),
    whatsappId: Type.String({ description: "WhatsApp's id: `data.id` of its event." }),
    ...senderProperties,
    addressing: nullable(senderProperties.addressing),
    group: nullable(senderProperties.group),
    name: nullable(senderProperties.name),
    phone: nullable(senderProperties.phone),
    lid: nullable(senderProperties.lid),
    username: nullable(senderProperties.username),
    text: nullable(
      Type.String({ description: 'All of the text, the caption or the reaction; null where there is none.' }),
    ),
    sentAt: moment('When it was sent, by the clock of WhatsApp.'),
    createdAt: moment('When it was recorded.'),
  },
  { title: 'ReceivedMessage', description: 'A message to the instance.' },
)

export function incomingMessageView(message: StoredIncoming): Static<typeof incomingMessageSchema> {
  const { messageId, id, from, addressing, group, name, chat, lid, username, type, text, sentAt, createdAt } = message
  return {
    id: messageId,
    direction: 'in',
    status: 'received',
    whatsappId: id,
    chat,
    from,
    addressing: addressing ?? null,
    group: group ?? null,
    name: name ?? null,
    phone: phoneOf(message),
    lid,
    username,
    type,
    text: text ?? null,
    sentAt: toIso(sentAt),
    createdAt: toIso(createdAt),
  }
}
