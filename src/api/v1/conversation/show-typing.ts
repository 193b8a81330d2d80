import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { checkRecipient } from '../../input.ts'
import { recipientSchema } from '../../resources/message.ts'
import { dataOf } from '../../resources/schema-kit.ts'

const MAX_SECONDS = 60

const bodySchema = Type.Object(
  {
    seconds: Type.Integer({
      minimum: 0,
      maximum: MAX_SECONDS,
      description: 'For how long the other side sees the indicator. 0 ends it.',
      examples: [5],
    }),
  },
  { title: 'Typing' },
)

export function showTyping(api: Api, { store }: ApiContext): void {
  api.put(
    '/chats/:chat/typing',
    {
      schema: {
        operationId: 'showTyping',
        summary: 'Show a typing indicator',
        description:
          'The other side of the chat sees that the instance is typing. A later call for the same chat replaces this ' +
          'one. The indicator may be lost: it is not shown if the instance is not connected.',
        tags: ['Messages'],
        params: Type.Object({ chat: recipientSchema }),
        body: bodySchema,
        response: {
          202: dataOf(Type.Object({ chat: recipientSchema, seconds: Type.Integer() }), 'Requested.'),
        },
      },
      config: { scope: 'send', refusals: ['invalid_phone_number', 'invalid_request'] },
    },
    async (request, reply) => {
      const { chat } = request.params
      const { seconds } = request.body
      checkRecipient(chat, 'chat')
      store.conversations.requestTyping(request.instanceId, chat, seconds)
      reply.code(202)
      return { data: { chat, seconds } }
    },
  )
}
