import { Type } from 'typebox'
import { MESSAGE_STATES } from '../../../domain/message.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { findWaits } from '../../find-waits.ts'
import { checkChat, checkFilterText, isId, parseMoment } from '../../input.ts'
import { chatSchema, chatsQuery, chatView } from '../../resources/conversation/chat.ts'
import { lineSchema, lineView, messagesIn } from '../../resources/conversation/inbox.ts'
import { deliveredMessageView, incomingMessageSchema, writtenMessageSchema } from '../../resources/incoming-message.ts'
import { messageIdSchema, sentMessageSchema, sentMessageView } from '../../resources/message.ts'
import { PAGE_OF_TEXTS, pageOf, pageQuery, pageRequest } from '../../resources/page.ts'
import { dataOf, oneOf } from '../../resources/schema-kit.ts'

export function getMessage(api: Api, { store, now }: ApiContext): void {
  api.get(
    '/messages/:id',
    {
      schema: {
        operationId: 'getMessage',
        summary: 'Read a message',
        description:
          'Returns a sent message with its state, or a received message (`direction` is `in`) with its whole text. ' +
          'The ID of a received message is the `messageId` of its event. A message that the owner wrote on another ' +
          'device has the status `written`.',
        tags: ['Messages'],
        params: Type.Object({ id: messageIdSchema }),
        response: {
          200: dataOf(Type.Union([sentMessageSchema, incomingMessageSchema, writtenMessageSchema]), 'The message.'),
        },
      },
      config: { scope: 'read', refusals: ['message_not_found'] },
    },
    async request => {
      const { id } = request.params
      const { instanceId } = request
      if (!isId(id)) throw new Refusal('message_not_found')
      const sent = await store.messages.find(instanceId, id)
      if (sent) return { data: sentMessageView(sent, await findWaits(store, instanceId, [sent], now())) }
      const received = await store.messages.findIncoming(instanceId, id)
      if (received) return { data: deliveredMessageView(received) }
      throw new Refusal('message_not_found')
    },
  )
}

const messagesQuery = Type.Object({
  ...pageQuery,
  chat: Type.Optional(
    Type.String({
      maxLength: 64,
      description: 'Only messages of this number, LID or group, as in the field `chat` of an event.',
    }),
  ),
  status: Type.Optional(
    oneOf([...MESSAGE_STATES, 'received', 'written'], {
      description:
        'Only messages in this state; `received`: incoming messages; `written`: those that the owner wrote on ' +
        'another device.',
    }),
  ),
  direction: Type.Optional(
    oneOf(['in', 'out'], { description: 'Only incoming (`in`) or only sent (`out`) messages.' }),
  ),
  since: Type.Optional(Type.String({ description: 'Accepted or recorded at or after this time (ISO 8601).' })),
})

export function listOwnMessages(api: Api, { store, now }: ApiContext): void {
  api.get(
    '/messages',
    {
      schema: {
        operationId: 'listOwnMessages',
        summary: 'List messages in both directions',
        description: `Sent and received messages, newest first by \`createdAt\`. ${PAGE_OF_TEXTS}`,
        tags: ['Messages'],
        querystring: messagesQuery,
        response: { 200: pageOf(lineSchema, 'One page of messages.') },
      },
      config: { scope: 'read', refusals: ['invalid_request'] },
    },
    async request => {
      const { chat, status, direction, since } = request.query
      if (chat !== undefined) checkChat('chat', chat)
      const filter = { chat, status, direction, since: since === undefined ? undefined : parseMoment('since', since) }
      const { instanceId } = request
      const page = await store.conversations.listLines(instanceId, pageRequest(request.query), filter)
      const waits = await findWaits(store, instanceId, messagesIn(page.data), now())
      return { data: page.data.map(line => lineView(line, waits)), nextCursor: page.nextCursor }
    },
  )
}

export function listChats(api: Api, { store }: ApiContext): void {
  api.get(
    '/chats',
    {
      schema: {
        operationId: 'listChats',
        summary: 'List chats',
        description:
          'People and groups that messages were exchanged with, latest first. The list includes the chats of the ' +
          'history that the phone reports after linking. The messages of that history are not stored.',
        tags: ['Messages'],
        querystring: chatsQuery,
        response: { 200: pageOf(chatSchema, 'One page of chats.') },
      },
      config: { scope: 'read', refusals: ['invalid_request'] },
    },
    async request => {
      const { search } = request.query
      if (search !== undefined) checkFilterText('search', search)
      const page = await store.conversations.listChats(request.instanceId, pageRequest(request.query), search)
      return { data: page.data.map(chatView), nextCursor: page.nextCursor }
    },
  )
}
