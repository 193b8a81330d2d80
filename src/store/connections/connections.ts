import type { StoredConnection } from '../../domain/connection/connection.ts'
import type { CallPolicy } from '../../domain/connection/incoming-call.ts'
import type { PasskeyAnswer } from '../../domain/connection/passkey.ts'
import type { InstanceId } from '../../domain/ids.ts'
import type { InstanceKind } from '../../domain/instance.ts'
import type { PhoneNumber } from '../../domain/recipients/recipient.ts'
import type { Lease } from '../leases/leases.ts'
import type { AnswerOutcome } from './passkey-answers.ts'

/** The stored connection and the instance's kind, which determines where to connect. */
export interface ConnectionRecord extends StoredConnection {
  instanceId: InstanceId
  kind: InstanceKind
  deleted: boolean
  calls: CallPolicy
  /** The URL of the instance's proxy, with its password. */
  proxy: string | null
}

/** The health of a connection, as last reported by its owner. */
export interface ConnectionHealth {
  /** When WhatsApp last sent a frame of any kind. */
  lastFrameAt: number | null
  /** The latest message that WhatsApp acknowledged: when, and how long after it was handed to the socket. */
  acknowledgement: { at: number; latencyMs: number } | null
  /** How many incoming messages could not be decrypted since the instance was created. */
  undecryptable: number
  lastUndecryptableAt: number | null
  /** Socket closes within the last 24 hours by code, the most recent first. */
  closes: { code: number; count: number; lastAt: number }[]
}

/** A report from the owner. It contains only the closes since the previous report. */
export interface HealthReport extends Omit<ConnectionHealth, 'closes'> {
  closes: readonly { at: number; code: number }[]
}

/** Another instance that is linked to the same number. */
export interface SameNumber {
  id: InstanceId
  name: string
}

export interface Connections {
  /** Also finds a deleted instance, as long as its rows exist. */
  find(id: InstanceId): Promise<ConnectionRecord | null>
  /**
   * Sets the goal `online`: the owner links (by QR code, or by pairing code for `pairingPhone`) or reconnects. If a logout is
   * still to be carried out, it is carried out first (`relinked`).
   * False if there is no such instance, or its session was exported (cause `exported`) and the request is not confirmed.
   */
  requestConnect(id: InstanceId, pairingPhone: PhoneNumber | null, isConfirmed?: boolean): Promise<boolean>
  /** Sets the goal `logged_out`: the owner unlinks the number. False if there is no such instance. */
  requestLogout(id: InstanceId): Promise<boolean>
  /**
   * The hint `goal` announces the change, and the owner reconnects through the new proxy. False if there is no such
   * instance.
   * @param proxy its URL; null: none
   */
  setProxy(id: InstanceId, proxy: string | null): Promise<boolean>
  /**
   * The other instances that are linked to the number, the oldest first; at most `limit`. Sandbox instances are left
   * out, because they are not linked to real numbers.
   * @param reached the instances to search. Default: all
   */
  listSameNumber(
    record: Pick<ConnectionRecord, 'instanceId' | 'kind' | 'phone'>,
    limit: number,
    reached?: readonly InstanceId[] | null,
  ): Promise<SameNumber[]>
  /** The policy applies to phone calls that begin later. False if there is no such instance. */
  setCalls(id: InstanceId, calls: CallPolicy): Promise<boolean>
  /**
   * The owner records changed facts. `since` changes only with `state`. The store sets `lastConnectedAt` at every call
   * while the state is `connected`, and when that state ends; `connecting` clears it. With `ifGoalVersion`, `goal`
   * stays unchanged if a newer goal was requested. If the goal is `relinked`, `idle` changes it to `online`, and any
   * other goal leaves it unchanged. A visible change is recorded as an event in the same commit (`connectionEventOf`).
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
        | 'passkey'
        | 'phone'
        | 'retryAt'
        | 'restriction'
      >
    > & { ifGoalVersion?: number },
    now: number,
  ): Promise<void>
  /**
   * Passes a person's answer to the owner, encrypted under the instance's key. A later owner, or the owner after a
   * newer goal, does not get it. Reading erases it, and it expires after `PASSKEY_ANSWER_MS`.
   */
  answerPasskey(id: InstanceId, answer: PasskeyAnswer): Promise<AnswerOutcome>
  /** Erases and returns the answer. Null if there is none for this owner and goal. */
  takePasskeyAnswer(lease: Lease, goalVersion: number): Promise<PasskeyAnswer | null>
  /** Erases answers that no owner has read in time. */
  eraseOldPasskeyAnswers(): Promise<void>
  /**
   * Records the event of a change that no other write records: the instance has become `disconnected`.
   * @returns whether the latest report is `instance.disconnected`
   */
  report(lease: Lease, now: number): Promise<boolean>
  /** Replaces the values of the previous report and adds the closes. Idempotent. */
  recordHealth(lease: Lease, report: HealthReport, now: number): Promise<void>
  findHealth(id: InstanceId, now: number): Promise<ConnectionHealth>
}
