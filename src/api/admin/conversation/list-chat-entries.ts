import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { findWaits } from '../../find-waits.ts'
import { checkChat } from '../../input.ts'
import { chatEntrySchema, chatEntryView, messagesIn } from '../../resources/conversation/inbox.ts'
import { pageOf, pageQuery, pageRequest } from '../../resources/page.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

const querySchema = Type.Object({
  ...pageQuery,
  chat: Type.String({ maxLength: 64, description: 'A number, a group or a LID: `chat` of an event or a chat.' }),
})

export function listChatEntries(api: Api, { store, now }: ApiContext): void {
  api.get(
    '/instances/:id/conversation',
    {
      schema: {
        operationId: 'listChatEntries',
        summary: 'Read a conversation',
        description:
          'Sent and received messages of one chat, and what the instance did with messages (reactions, edits, deletions, ' +
          'read marks), newest first. A reaction of the other side is a received message of the type `reaction`. What ' +
          'concerns a message is newer than the message, so it is on the same page or an earlier one.',
        tags: ['Conversations'],
        params: instanceParams,
        querystring: querySchema,
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
