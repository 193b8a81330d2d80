import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { findWaits } from '../../find-waits.ts'
import { isId } from '../../input.ts'
import { deliveredMessageView, incomingMessageSchema, writtenMessageSchema } from '../../resources/incoming-message.ts'
import { messageIdSchema, sentMessageSchema, sentMessageView } from '../../resources/message.ts'
import { dataOf } from '../../resources/schema-kit.ts'

export function getMessage(api: Api, { store, now }: ApiContext): void {
  api.get(
    '/messages/:id',
    {
      schema: {
        operationId: 'getMessage',
        summary: 'Read a message',
        description:
          'Returns a sent message with its state, or a received message (`direction` is `in`) with its whole text. The ID of ' +
          'a received message is the `messageId` of its event. `written` is the status of one that the owner wrote on another device.',
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
