import { type Static, Type } from 'typebox'
import type { Pace, QuietHours } from '../../domain/pace.ts'
import { nullable } from './schema-kit.ts'

const MAX_PER_MINUTE = 600
const MAX_NEW_RECIPIENTS_PER_DAY = 1_000

const time = (description: string, examples: string[]) =>
  Type.String({ pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$', description, examples })

export const paceSchema = Type.Object(
  {
    perMinute: nullable(
      Type.Integer({
        minimum: 1,
        maximum: MAX_PER_MINUTE,
        description: 'The maximum number of messages in any minute. Null: as fast as WhatsApp takes them.',
      }),
    ),
    newRecipientsPerDay: nullable(
      Type.Integer({
        minimum: 0,
        maximum: MAX_NEW_RECIPIENTS_PER_DAY,
        description:
          'The maximum number of new recipients in a day: people who have not written to the instance, and to whom it has ' +
          'sent no message that WhatsApp acknowledged. Null: any number.',
      }),
    ),
    quietHours: nullable(
      Type.Object(
        {
          from: time('When they begin.', ['22:00']),
          until: time('When they end. If it is earlier than `from`, they run past midnight.', ['07:00']),
        },
        { title: 'QuietHours', description: 'Messages that are due then are sent afterwards. Null: no quiet hours.' },
      ),
    ),
    timeZone: Type.String({
      maxLength: 64,
      description: 'The time zone of the quiet hours and of the day, by its IANA name.',
      examples: ['America/Sao_Paulo'],
    }),
    typing: Type.Boolean({
      description: 'Whether the recipient sees, for 1 to 8 seconds before each text, that the instance is typing.',
    }),
  },
  { title: 'Pace', description: 'How slowly an instance sends.' },
)

/** Null or an absent field: without this limit. */
export const paceRequestSchema = Type.Partial(
  Type.Object({
    ...paceSchema.properties,
    timeZone: nullable(paceSchema.properties.timeZone),
    typing: nullable(paceSchema.properties.typing),
  }),
  { title: 'PaceRequest' },
)

export type PaceView = Static<typeof paceSchema>

export function paceView({ quietHours, ...pace }: Pace): PaceView {
  return { ...pace, quietHours: quietHours && { from: toTime(quietHours.from), until: toTime(quietHours.until) } }
}

/** @param time in the form `HH:MM` @returns the minute of the day */
export function minuteOf(time: string): QuietHours['from'] {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  return hours * 60 + minutes
}

function toTime(minute: number): string {
  const two = (value: number) => value.toString().padStart(2, '0')
  return `${two(Math.floor(minute / 60))}:${two(minute % 60)}`
}
