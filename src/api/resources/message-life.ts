import { type Static, Type } from 'typebox'
import type { Message } from '../../domain/message.ts'
import type { MessageEvent } from '../../store/messages/messages.ts'
import { deliverySchema, deliveryView, eventIdSchema, eventKindSchema } from './events/event.ts'
import { messageProperties, messageView, type Waits } from './message.ts'
import { moment, nullable, toIso } from './schema-kit.ts'

const messageEventSchema = Type.Object(
  {
    id: eventIdSchema,
    event: eventKindSchema,
    timestamp: moment('When the change was recorded.'),
    delivery: nullable(deliverySchema),
  },
  { title: 'MessageEvent' },
)

export const messageLifeSchema = Type.Object(
  {
    ...messageProperties,
    events: Type.Array(messageEventSchema, {
      description: 'The events of its state changes, oldest first.',
    }),
  },
  { title: 'MessageLife', description: 'A message with its timeline.' },
)

export type MessageLifeView = Static<typeof messageLifeSchema>

export function messageLifeView(message: Message, events: readonly MessageEvent[], waits: Waits): MessageLifeView {
  return {
    ...messageView(message, waits),
    events: events.map(({ id, kind, timestamp, delivery }) => ({
      id,
      event: kind,
      timestamp: toIso(timestamp),
      delivery: delivery && deliveryView(id, delivery),
    })),
  }
}
