import { type Static, Type } from 'typebox'
import { isInForce, type Restriction } from '../../domain/connection/restriction.ts'
import { moment, nullable, toIso } from './schema-kit.ts'

export const restrictionSchema = nullable(
  Type.Object(
    {
      since: moment('When the restriction began.'),
      until: moment('When messages to strangers are sent again.'),
      reportedByWhatsapp: Type.Boolean({
        description: 'Whether WhatsApp reported `until`. Otherwise Pombal assumes it and tries again then.',
      }),
    },
    {
      title: 'Restriction',
      description:
        'WhatsApp does not let the number start new conversations (error 463). Messages to strangers wait. Messages to ' +
        'groups, and to contacts that exchanged a message with the instance since the number was linked, are sent.',
    },
  ),
)

type RestrictionView = Static<typeof restrictionSchema>

/** @returns null if there is none or its end has passed */
export function restrictionView(restriction: Restriction | null, now: number): RestrictionView {
  if (!isInForce(restriction, now)) return null
  const { since, until, reportedByWhatsapp } = restriction
  return { since: toIso(since), until: toIso(until), reportedByWhatsapp }
}
