import type { StoredConnection } from '../../domain/connection.ts'
import type { InstanceId } from '../../domain/ids.ts'
import type { InstanceKind } from '../../domain/instance.ts'
import type { PhoneNumber } from '../../domain/recipient.ts'
import type { Lease } from '../leases/leases.ts'

/** The stored connection and the instance's kind, which says where to connect to. */
export interface ConnectionRecord extends StoredConnection {
  instanceId: InstanceId
  kind: InstanceKind
  deleted: boolean
}

/** How a connection is doing, as its owner last told. */
export interface ConnectionHealth {
  /** When WhatsApp last sent anything at all. */
  lastFrameAt: number | null
  /** The latest message that WhatsApp acknowledged: when, and how long after it was handed to the socket. */
  acknowledgement: { at: number; latencyMs: number } | null
  /** How often an incoming message could not be decrypted, since the instance was made. */
  undecryptable: number
  lastUndecryptableAt: number | null
  /** Why sockets ended within the last 24 hours, by code, the latest first. */
  closes: { code: number; count: number; lastAt: number }[]
}

/** The same as its owner tells it; of the closes only those not told before. */
export interface HealthReport extends Omit<ConnectionHealth, 'closes'> {
  closes: readonly { at: number; code: number }[]
}

export interface Connections {
  /** Also for a deleted instance whose rows are still there. */
  find(id: InstanceId): Promise<ConnectionRecord | null>
  /** Asks the owner to link (QR, or pairing code for `pairingPhone`), or to resume a stopped one. */
  requestConnect(id: InstanceId, pairingPhone: PhoneNumber | null): Promise<boolean>
  /** Asks the owner to unlink the number. */
  requestLogout(id: InstanceId): Promise<boolean>
  /**
   * The owner tells what is the case. `since` moves only when `state` changes; `lastConnectedAt` is set by the store
   * while the state is, or stops being, `connected`. With `ifGoalVersion`, `goal` is left alone once there is a newer wish.
   */
  record(
    lease: Lease,
    change: Partial<
      Pick<
        StoredConnection,
        | 'state'
        | 'reason'
        | 'cause'
        | 'goal'
        | 'qr'
        | 'qrExpiresAt'
        | 'pairingCode'
        | 'phone'
        | 'retryAt'
        | 'restriction'
      >
    > & { ifGoalVersion?: number },
    now: number,
  ): Promise<void>
  /** What the owner has seen, in place of what it told before. Taken twice without harm. */
  recordHealth(lease: Lease, report: HealthReport, now: number): Promise<void>
  findHealth(id: InstanceId, now: number): Promise<ConnectionHealth>
}
