import { type Static, Type } from 'typebox'
import {
  CONNECTION_CAUSES,
  type ConnectionState,
  RECONNECTING_MS,
  type StoredConnection,
} from '../../domain/connection/connection.ts'
import { withoutPassword } from '../../domain/connection/proxy-url.ts'
import type { Instance } from '../../domain/instance.ts'
import type { ConnectionRecord, SameNumber } from '../../store/connections/connections.ts'
import { instanceIdSchema, kindSchema, phoneSchema, reasonSchema, stateSchema } from './instance.ts'
import { passkeySchema, passkeyView } from './passkey.ts'
import { restrictionSchema, restrictionView } from './restriction.ts'
import { moment, nullable, oneOf, toIso, toIsoOrNull } from './schema-kit.ts'

const proxySchema = nullable(
  Type.String({
    description: 'The URL of the proxy through which the instance connects, without its password. Null: none.',
    examples: ['socks5://user@proxy.example:1080'],
  }),
)

export const proxyViewSchema = Type.Object({ url: proxySchema }, { title: 'Proxy' })

export type ProxyView = Static<typeof proxyViewSchema>

export const connectionSchema = Type.Object(
  {
    instanceId: instanceIdSchema,
    kind: kindSchema,
    state: stateSchema,
    reason: reasonSchema,
    cause: nullable(
      oneOf(CONNECTION_CAUSES, {
        description: 'The reason as a stable code; null if it was recorded before the codes existed.',
      }),
    ),
    since: moment('When this state began.'),
    qr: nullable(Type.String({ description: 'The text of the QR code to scan while `linking`.' })),
    qrExpiresAt: nullable(moment('When the next QR code replaces this one.')),
    pairingCode: nullable(
      Type.String({ description: 'The code to type on the phone, if a pairing code was requested.' }),
    ),
    passkey: passkeySchema,
    retryAt: nullable(moment('When the next attempt to connect starts.')),
    restriction: restrictionSchema,
    proxy: proxySchema,
    sameNumber: Type.Array(Type.Object({ id: instanceIdSchema, name: Type.String() }), {
      description:
        'Other instances that are linked to the same number. Each of them reports every message to the number. At most 10, and only ' +
        'those that the caller may see.',
    }),
    phone: phoneSchema,
    lastConnectedAt: nullable(moment('When the connection was last known to be open.')),
    simulated: Type.Boolean({ description: 'Whether the WhatsApp network is simulated.' }),
  },
  { title: 'Connection', description: "An instance's connection to WhatsApp." },
)

export type ConnectionView = Static<typeof connectionSchema>

/** @param allSimulated whether instances of every kind are connected to a simulated network */
export function connectionView(
  instance: Instance,
  stored: ConnectionRecord,
  allSimulated: boolean,
  now: number,
  sameNumber: readonly SameNumber[],
): ConnectionView {
  return {
    instanceId: instance.id,
    kind: instance.kind,
    state: instance.state,
    reason: instance.reason,
    cause: stored.cause,
    since: toIso(stateSince(instance.state, stored)),
    qr: stored.qr,
    qrExpiresAt: toIsoOrNull(stored.qrExpiresAt),
    pairingCode: stored.pairingCode,
    passkey: passkeyView(stored.passkey),
    retryAt: toIsoOrNull(stored.retryAt),
    restriction: restrictionView(stored.restriction, now),
    sameNumber: sameNumber.map(({ id, name }) => ({ id, name })),
    proxy: stored.proxy && withoutPassword(stored.proxy),
    phone: stored.phone,
    lastConnectedAt: toIsoOrNull(stored.lastConnectedAt),
    simulated: allSimulated || instance.kind === 'sandbox',
  }
}

/** The start of the present state. It is computed if the state is derived (`currentState`). */
function stateSince(state: ConnectionState, stored: StoredConnection): number {
  const { since, lastConnectedAt } = stored
  if (state === stored.state || lastConnectedAt === null) return since
  return state === 'disconnected' ? lastConnectedAt + RECONNECTING_MS : Math.max(since, lastConnectedAt)
}
