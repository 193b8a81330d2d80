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
