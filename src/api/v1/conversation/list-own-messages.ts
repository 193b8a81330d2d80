import { Type } from 'typebox'
import { MESSAGE_STATES } from '../../../domain/message.ts'
import type { Api, ApiContext } from '../../context.ts'
import { findWaits } from '../../find-waits.ts'
import { checkChat, parseMoment } from '../../input.ts'
import { lineSchema, lineView, messagesIn } from '../../resources/conversation/inbox.ts'
import { pageOf, pageQuery, pageRequest } from '../../resources/page.ts'
import { oneOf } from '../../resources/schema-kit.ts'

const querySchema = Type.Object({
  ...pageQuery,
  chat: Type.Optional(
    Type.String({ maxLength: 64, description: 'Only messages of this number, LID or group: `chat` of an event.' }),
  ),
  status: Type.Optional(
    oneOf([...MESSAGE_STATES, 'received', 'written'], {
      description:
        'Only messages in this state; `received`: incoming messages; `written`: those that the owner wrote on another device.',
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
        description: 'Sent and received messages, newest first by the time of their acceptance or record.',
        tags: ['Messages'],
        querystring: querySchema,
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
