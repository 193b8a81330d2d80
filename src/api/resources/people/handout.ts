import { type Static, Type } from 'typebox'
import { CONNECTION_CAUSES, type ConnectionState } from '../../../domain/connection/connection.ts'
import type { Instance } from '../../../domain/instance.ts'
import type { ConnectionRecord } from '../../../store/connections/connections.ts'
import { type Handout, MAX_HANDOUTS, PAIRING_CODES_PER_HANDOUT } from '../../../store/handouts/handouts.ts'
import { stateSchema } from '../instance.ts'
import { passkeySchema, passkeyView } from '../passkey.ts'
import { moment, nullable, oneOf, toIso, toIsoOrNull } from '../schema-kit.ts'

const titleSchema = nullable(
  Type.String({
    description: 'Shown to the person who opens the link. Null: a general heading.',
    examples: ['Loja da Ana'],
  }),
)
const returnUrlSchema = nullable(
  Type.String({
    description: 'A link on the last page, http or https. Null: none.',
    examples: ['https://shop.example.com/settings'],
  }),
)
const expiresAtSchema = moment('When the link stops working.')
const leftSchema = Type.Integer({
  description: `How many of the ${PAIRING_CODES_PER_HANDOUT} pairing codes are left.`,
})

export const linkSchema = Type.Object(
  {
    id: Type.String({ description: 'The ID of the link.', examples: ['lnk_4f9k2m7q1x0z'] }),
    title: titleSchema,
    returnUrl: returnUrlSchema,
    createdAt: moment('When it was created.'),
    expiresAt: expiresAtSchema,
    openedAt: nullable(moment('When a person began to link, which bound the link to that browser.')),
    usedAt: nullable(moment('When a number was linked. After that, nobody can link with this link.')),
    pairingCodesLeft: leftSchema,
  },
  {
    title: 'Link',
    description: `A link that lets somebody link a number. An instance has at most ${MAX_HANDOUTS} that are neither used nor expired.`,
  },
)

export const createdLinkSchema = Type.Object(
  {
    ...linkSchema.properties,
    url: Type.String({
      description: 'The link. It is shown only once, and is a path unless `PUBLIC_URL` is set.',
      examples: ['https://pombal.example.com/link#KSMoP4JwmPD1YXn9yHdNNw6pRQ2mU3vGmXb4mCZtQ0w'],
    }),
  },
  { title: 'CreatedLink' },
)

export const linkPageSchema = Type.Object(
  {
    title: titleSchema,
    returnUrl: returnUrlSchema,
    expiresAt: expiresAtSchema,
    opened: Type.Boolean({ description: 'Whether this browser has begun to link.' }),
    linked: Type.Boolean({ description: 'Whether a number was linked. After that, nobody can link with this link.' }),
    pairingCodesLeft: leftSchema,
    state: nullable(stateSchema),
    cause: nullable(oneOf(CONNECTION_CAUSES, { description: 'The reason as a stable code.' })),
    since: nullable(moment('When the state began.')),
    qr: nullable(Type.String({ description: 'The text of the QR code.' })),
    qrExpiresAt: nullable(moment('When the next QR code replaces this one.')),
    pairingCode: nullable(Type.String({ description: 'The code to type on the phone.' })),
    passkey: passkeySchema,
  },
  {
    title: 'LinkPage',
    description:
      'What the linking page shows. `state` and the fields after it are null before the link is opened and after a ' +
      'number was linked.',
  },
)

export type LinkView = Static<typeof linkSchema>
export type CreatedLinkView = Static<typeof createdLinkSchema>
export type LinkPageView = Static<typeof linkPageSchema>

export function linkView(handout: Handout): LinkView {
  const { id, title, returnUrl, createdAt, expiresAt, openedAt, usedAt, pairingCodesLeft } = handout
  return {
    id,
    title,
    returnUrl,
    createdAt: toIso(createdAt),
    expiresAt: toIso(expiresAt),
    openedAt: toIsoOrNull(openedAt),
    usedAt: toIsoOrNull(usedAt),
    pairingCodesLeft,
  }
}

/** @param linking null unless the page may show the connection */
export function linkPageView(
  handout: Handout,
  linking: { instance: Pick<Instance, 'state'>; connection: ConnectionRecord } | null,
): LinkPageView {
  const { title, returnUrl, expiresAt, openedAt, usedAt, pairingCodesLeft } = handout
  // A node of the previous version does not record that the link was used.
  const linked = usedAt !== null || (linking?.connection.phone ?? null) !== null
  if (linked) linking = null
  const state: ConnectionState | null = linking?.instance.state ?? null
  return {
    title,
    returnUrl,
    expiresAt: toIso(expiresAt),
    opened: openedAt !== null,
    linked,
    pairingCodesLeft,
    state,
    cause: linking?.connection.cause ?? null,
    since: toIsoOrNull(linking?.connection.since ?? null),
    qr: linking?.connection.qr ?? null,
    qrExpiresAt: toIsoOrNull(linking?.connection.qrExpiresAt ?? null),
    pairingCode: linking?.connection.pairingCode ?? null,
    passkey: passkeyView(linking?.connection.passkey ?? null),
  }
}
