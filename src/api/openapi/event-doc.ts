import { Type } from 'typebox'
import type { EventKind } from '../../domain/events/event.ts'
import { instanceIdSchema } from '../resources/instance.ts'
import { moment, nullable } from '../resources/schema-kit.ts'

/** The documented body of one event kind (contract §4), as `domain/events/event.ts` writes it. */
export interface EventDoc {
  summary: string
  schema: object
  example: unknown
}

export const SUBJECT = {
  instanceId: 'inst_4f9k2m7q1x0z',
  messageId: 'msg_01kajxq8r2f0v7m3n5p9s1t4w6',
  to: '5511987654321',
}
export const AT = Date.UTC(2026, 10, 21, 12)

const erasedData = Type.Object(
  {
    id: nullable(Type.String({ description: 'The ID of the message in Pombal; null if it has none.' })),
    erased: Type.Unsafe<true>({ type: 'boolean', const: true }),
  },
  {
    additionalProperties: false,
    description: 'All that is left after the contact was erased, in the feed and in later deliveries.',
  },
)

/** Whether events of this kind lose their data when the contact that they concern is erased. */
function isErasable(kind: EventKind): boolean {
  return /^(message|command|media)\./.test(kind)
}

export function envelope(kind: EventKind, data: object) {
  return Type.Object(
    {
      event: Type.Unsafe<EventKind>({ type: 'string', const: kind }),
      instanceId: instanceIdSchema,
      timestamp: moment(
        'When the change was recorded; for `message.received`, `.written`, `.edited` and `.deleted` the time that ' +
          'WhatsApp reports.',
      ),
      data: isErasable(kind) ? Type.Unsafe({ anyOf: [data, erasedData] }) : Type.Unsafe(data),
    },
    {
      title: `Event ${kind}`.replaceAll(/[ ._]+(\w)/g, (_, letter: string) => letter.toUpperCase()),
      additionalProperties: false,
    },
  )
}
