import { type Static, Type } from 'typebox'
import { instanceSchema } from './instance.ts'
import { oneOf } from './schema-kit.ts'

export const foundSchema = Type.Object(
  {
    kind: oneOf(['message', 'event', 'number'], {
      description: '`message`: a sent message; `event`: an event, also that of a received message; `number`: a number.',
    }),
    id: Type.String({ description: 'The message, the event or the number.' }),
    instance: instanceSchema,
  },
  { title: 'Found' },
)

export type FoundView = Static<typeof foundSchema>
