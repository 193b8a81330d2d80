import type { ConnectionState } from './connection/connection.ts'
import type { InstanceId } from './ids.ts'

export const INSTANCE_KINDS = ['whatsapp', 'sandbox'] as const
export type InstanceKind = (typeof INSTANCE_KINDS)[number]

/** A tenant: one WhatsApp number, with one token, API keys and endpoints of its own. */
export interface Instance {
  id: InstanceId
  name: string
  kind: InstanceKind
  /** The present state (`currentState`), not the stored one. */
  state: ConnectionState
  reason: string
  phone: string | null
  createdAt: number
}

export interface Webhook {
  instanceId: InstanceId
  url: string | null
  /** `whsec_` and the base64 of 32 bytes; the whole string is the key of X-Service-Signature. */
  secret: string
}

/** How long a replaced webhook secret signs in addition to the new one (contract §5). */
export const PREVIOUS_SECRET_MS = 24 * 60 * 60_000

/** The secrets in force: the current one and, for 24 h after a rotation, the previous one. */
export interface SigningSecrets {
  current: string
  previous: string | null
}
