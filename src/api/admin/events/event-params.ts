import { Type } from 'typebox'
import { eventIdSchema } from '../../resources/event.ts'
import { instanceIdSchema } from '../../resources/instance.ts'

export const eventParams = Type.Object({ id: instanceIdSchema, eventId: eventIdSchema })
