import { Type } from 'typebox'
import { Refusal } from '../../domain/refusal.ts'
import type { Api, ApiContext } from '../context.ts'
import { isId } from '../input.ts'
import { messageIdSchema, messageSchema, messageView } from '../resources/message.ts'
import { dataOf } from '../resources/schema-kit.ts'

export function getMessage(api: Api, { store }: ApiContext): void {
  api.get(
    '/messages/:id',
    {
      schema: {
        operationId: 'getMessage',
        summary: 'Read a message',
        description: 'The message as it was accepted, and how far it got.',
        tags: ['Messages'],
        params: Type.Object({ id: messageIdSchema }),
        response: { 200: dataOf(messageSchema, 'The message.') },
      },
      config: { refusals: ['message_not_found'] },
    },
    async request => {
      const { id } = request.params
      const message = isId(id) ? await store.messages.find(request.instanceId, id) : null
      if (!message) throw new Refusal('message_not_found')
      return { data: messageView(message) }
    },
  )
}
