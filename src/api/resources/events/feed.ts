import { Type } from 'typebox'
import { EVENT_KINDS } from '../../../domain/events/event.ts'
import { instanceIdSchema } from '../instance.ts'
import { moment, oneOf } from '../schema-kit.ts'
import { eventIdSchema, eventKindSchema } from './event.ts'

const cursorSchema = Type.String({
  description: 'The place of the event in the feed. Pass it on unchanged; do not compare or compute with it.',
})

const feedEventSchema = Type.Object(
  {
    id: eventIdSchema,
    cursor: cursorSchema,
    body: Type.Object(
      {
        event: eventKindSchema,
        instanceId: instanceIdSchema,
        timestamp: moment('The timestamp of the event.'),
        data: Type.Object({}, { additionalProperties: true, description: 'As in the event that a webhook gets.' }),
      },
      { description: 'The event as a webhook gets it.' },
    ),
  },
  { title: 'FeedEvent', description: 'An event in the feed.' },
)

export const feedPageSchema = Type.Object(
  {
    data: Type.Array(feedEventSchema, { description: 'In the order in which they were recorded. May be empty.' }),
    nextCursor: Type.String({ description: 'Pass it as `after` in the next call, even if `data` is empty.' }),
  },
  { description: 'The next events.' },
)

export const feedQuery = {
  after: Type.Optional(
    Type.String({
      description:
        'A cursor: only later events. `latest`: only events recorded from now on. Default: those after the last erased one.',
    }),
  ),
  event: Type.Optional(oneOf(EVENT_KINDS, { description: 'Only events of this kind.' })),
}
