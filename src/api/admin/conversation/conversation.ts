import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { findWaits } from '../../find-waits.ts'
import { checkChat, checkFilterText } from '../../input.ts'
import { chatsQuery } from '../../resources/conversation/chat.ts'
import {
  chatEntrySchema,
  chatEntryView,
  inboxChatSchema,
  inboxChatView,
  lineSchema,
  lineView,
  messagesIn,
} from '../../resources/conversation/inbox.ts'
import { PAGE_OF_TEXTS, pageOf, pageQuery, pageRequest } from '../../resources/page.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

export function listInstanceChats(api: Api, { store, settings, now }: ApiContext): void {
  api.get(
    '/instances/:id/chats',
    {
      schema: {
        operationId: 'listInstanceChats',
        summary: 'List the chats of an instance with their last messages',
        description:
          'People and groups that messages were exchanged with, latest first. Chats of the history that the phone ' +
          'reports after linking are included, but their earlier messages are not stored. Where two pages meet, ' +
          'chats whose last messages are within a minute of each other may be out of order. The text of a last ' +
          'message is cut to 1,000 UTF-16 units.',
        tags: ['Conversations'],
        params: instanceParams,
        querystring: chatsQuery,
        response: { 200: pageOf(inboxChatSchema, 'One page of chats.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { search } = request.query
      if (search !== undefined) checkFilterText('search', search)
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      // A file keeps a message in the store after its answer and its read mark are erased.
      const unreadSince = now() - settings.retentionMs
      const page = await store.conversations.listInbox(id, pageRequest(request.query), search, unreadSince)
      return { data: page.data.map(inboxChatView), nextCursor: page.nextCursor }
    },
  )
}

const entriesQuery = Type.Object({
  ...pageQuery,
  chat: Type.String({
    maxLength: 64,
    description: 'A number, a group or a LID, as in the field `chat` of an event or of a listed chat.',
  }),
})

export function listChatEntries(api: Api, { store, now }: ApiContext): void {
  api.get(
    '/instances/:id/conversation',
    {
      schema: {
        operationId: 'listChatEntries',
        summary: 'Read a conversation',
        description:
          'Sent and received messages of one chat, and what the instance did with messages (reactions, edits, ' +
          'deletions, read marks), newest first. A reaction of the other side is a received message of the type ' +
          '`reaction`. Commands ' +
          `and reactions are newer than their message, so they are on its page or an earlier one. ${PAGE_OF_TEXTS}`,
        tags: ['Conversations'],
        params: instanceParams,
        querystring: entriesQuery,
        response: { 200: pageOf(chatEntrySchema, 'One page of the conversation.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { chat } = request.query
      checkChat('chat', chat)
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const page = await store.conversations.listEntries(id, pageRequest(request.query), chat)
      const waits = await findWaits(store, id, messagesIn(page.data), now())
      return { data: page.data.map(entry => chatEntryView(entry, waits)), nextCursor: page.nextCursor }
    },
  )
}

const searchQuery = Type.Object({
  ...pageQuery,
  search: Type.String({
    minLength: 1,
    maxLength: 64,
    description: 'Only messages whose text contains this, without regard to case and accents.',
  }),
})

export function searchMessages(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/messages/search',
    {
      schema: {
        operationId: 'searchMessages',
        summary: 'Find messages in both directions by their text',
        description: `Newest first. Reads all messages, so it may take seconds if few contain the text. ${PAGE_OF_TEXTS}`,
        tags: ['Conversations'],
        params: instanceParams,
        querystring: searchQuery,
        response: { 200: pageOf(lineSchema, 'One page of messages.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { search } = request.query
      checkFilterText('search', search)
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const page = await store.conversations.listLines(id, pageRequest(request.query), { search })
      return { data: page.data.map(line => lineView(line)), nextCursor: page.nextCursor }
    },
  )
}
