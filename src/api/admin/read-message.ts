import { Type } from 'typebox'
import type { Message } from '../../domain/message.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { MessageEvent } from '../../store/store.ts'
import type { Api, ApiContext } from '../context.ts'
import { isId } from '../input.ts'
import { deliverySchema, deliveryView, eventIdSchema, eventKindSchema } from '../resources/event.ts'
import { instanceIdSchema } from '../resources/instance.ts'
import { messageIdSchema, messageProperties, messageView } from '../resources/message.ts'
import { dataOf, moment, nullable, toIso } from '../resources/schema-kit.ts'
import { getInstanceOrRefuse } from './instance-params.ts'

const messageEventSchema = Type.Object(
  {
    id: eventIdSchema,
    event: eventKindSchema,
    timestamp: moment('When the change was recorded.'),
    delivery: nullable(deliverySchema),
  },
  { title: 'MessageEvent' },
)

const messageLifeSchema = Type.Object(
  {
    ...messageProperties,
    events: Type.Array(messageEventSchema, {
      description: 'The changes of its state as they were told, oldest first.',
    }),
  },
  { title: 'MessageLife', description: 'A message with its time line.' },
)

export function readMessage(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/messages/:messageId',
    {
      schema: {
        operationId: 'readMessage',
        summary: 'Read a message and its time line',
        tags: ['Message log'],
        params: Type.Object({ id: instanceIdSchema, messageId: messageIdSchema }),
        response: { 200: dataOf(messageLifeSchema, 'The message with its events.') },
      },
      config: { refusals: ['instance_not_found', 'message_not_found'] },
    },
    async request => {
      const { messageId } = request.params
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const message = isId(messageId) ? await store.messages.find(id, messageId) : null
      if (!message) throw new Refusal('message_not_found')
      return { data: messageLifeView(message, await store.messages.listEvents(id, messageId)) }
    },
  )
}

function messageLifeView(message: Message, events: readonly MessageEvent[]) {
  return {
    ...messageView(message),
    events: events.map(({ id, kind, timestamp, delivery }) => ({
      id,
      event: kind,
      timestamp: toIso(timestamp),
      delivery: delivery && deliveryView(delivery),
    })),
  }
}
