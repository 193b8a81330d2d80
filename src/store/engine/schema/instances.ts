import type { Generated } from 'kysely'
import type {
  ConnectionCause,
  ConnectionGoal,
  Reported,
  StoredConnectionState,
} from '../../../domain/connection/connection.ts'
import type { InstanceKind } from '../../../domain/instance.ts'

/** Endpoints besides the default one, which is in `instances`, where nodes of the previous version use it. */
export interface EndpointsTable {
  instance_id: string
  id: string
  url: string
  /** Sealed. */
  secret: Uint8Array
  /** Sealed. Signs in addition to the current secret until `previous_secret_until`. */
  previous_secret: Uint8Array | null
  previous_secret_until: number | null
  /** A JSON list of patterns. */
  events: string
  active: number
  description: string | null
  created_at: number
  /** The row stays until its deliveries have ended. If the instance is deleted, its endpoints get the same value. */
  deleted_at: number | null
}

/** Endpoints that receive the `instance.*` events of all instances. */
export type OperatorEndpointsTable = Omit<EndpointsTable, 'instance_id'>

export interface InstancesTable {
  seq: Generated<number>
  id: string
  name: string
  kind: InstanceKind
  /** SHA-256 of the token; null once the instance is deleted. */
  token_digest: Uint8Array | null
  /** The URL of the default endpoint, and its other settings. */
  webhook_url: string | null
  /** A JSON list of patterns; null: the kinds of the contract. */
  webhook_events: string | null
  webhook_active: Generated<number>
  webhook_description: string | null
  /** Sealed. */
  webhook_secret: Uint8Array
  /** Sealed. Signs in addition to the current secret until `previous_secret_until`. */
  previous_secret: Uint8Array | null
  previous_secret_until: number | null
  created_at: number
  deleted_at: number | null
}

export interface ConnectionsTable {
  instance_id: string
  state: StoredConnectionState
  reason: string
  cause: ConnectionCause | null
  since: number
  goal: ConnectionGoal
  goal_version: number
  pairing_phone: string | null
  qr: string | null
  qr_expires_at: number | null
  pairing_code: string | null
  /** JSON of a `PasskeyStep`. */
  passkey: string | null
  phone: string | null
  last_connected_at: number | null
  retry_at: number | null
  /** Set together. */
  restricted_since: number | null
  restricted_until: number | null
  /** 1 if `restricted_until` came from WhatsApp. The column keeps its old name, because nodes of the previous version still use it. */
  restriction_told: number | null
  /** The URL of the proxy, with its password. Null: none. */
  sealed_proxy: Uint8Array | null
  /** 1 if phone calls are rejected. */
  rejects_calls: number | null
  /** Sent to the person whose phone call was rejected. */
  call_text: string | null
}

export interface ConnectionReportsTable {
  instance_id: string
  reported: Reported
}

export interface LeasesTable {
  instance_id: string
  /** Null if free. */
  owner: string | null
  epoch: number
  /** On the database's clock. */
  lease_until: number
}

export interface RateWindowsTable {
  instance_id: string
  /** On the database's clock. */
  opened_at: number
  calls: number
}
