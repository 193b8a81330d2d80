import { type Static, Type } from 'typebox'
import { isInForce, type Restriction } from '../../domain/restriction.ts'
import { moment, nullable, toIso } from './schema-kit.ts'

export const restrictionSchema = nullable(
  Type.Object(
    {
      since: moment('When it began.'),
      until: moment('When messages to strangers go out again.'),
      told: Type.Boolean({ description: 'Whether WhatsApp said until when; otherwise Pombal tries again then.' }),
    },
    {
      title: 'Restriction',
      description:
        'WhatsApp lets the number write to nobody new (error 463). Messages to strangers wait; those to groups, and to ' +
        'whoever wrote to the instance or got a message from it since the number was linked, go out.',
    },
  ),
)

export type RestrictionView = Static<typeof restrictionSchema>

/** Null also for one that is over and not yet lifted. */
export function restrictionView(restriction: Restriction | null, now: number): RestrictionView {
  if (!isInForce(restriction, now)) return null
  const { since, until, told } = restriction
  return { since: toIso(since), until: toIso(until), told }
}
