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
  /** The hint `goal` announces it, and the owner reconnects through it. False if there is no such instance. @param proxy its URL; null: none */
  setProxy(id: InstanceId, proxy: string | null): Promise<boolean>
  /**
   * The other instances that are linked to the number, the oldest first; at most `limit`. Sandbox instances are not linked to real numbers.
   * @param reached only these. Default: all of them
   */
  listSameNumber(
    record: Pick<ConnectionRecord, 'instanceId' | 'kind' | 'phone'>,
    limit: number,
    reached?: readonly InstanceId[] | null,
  ): Promise<SameNumber[]>
  /** It applies to calls that begin from now on. False if there is no such instance. */
  setCalls(id: InstanceId, calls: CallPolicy): Promise<boolean>
  /**
   * The owner records changed facts. `since` changes only with `state`. The store sets `lastConnectedAt` while the state is
   * `connected` and when it stops being so. With `ifGoalVersion`, `goal` stays unchanged if a newer goal was requested. The goal
   * `relinked` becomes `online` when the owner settles it as `idle`, and nothing else. A visible change is an event in the same commit (`connectionEventOf`).
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
   * Passes a person's answer to the owner, once, encrypted under the instance's key, and only to the owner and for the goal that asked
   * for it. It is erased when it is read, and void after `PASSKEY_ANSWER_MS`.
   */
  answerPasskey(id: InstanceId, answer: PasskeyAnswer): Promise<AnswerOutcome>
  /** Erases and returns the answer. Null if there is none for this owner and goal. */
  takePasskeyAnswer(lease: Lease, goalVersion: number): Promise<PasskeyAnswer | null>
  /** Erases answers that no owner has read in time. */
  eraseOldPasskeyAnswers(): Promise<void>
  /**
   * Records the event of a change that no other write records: the instance has become `disconnected`.
   * @returns whether it is reported as `disconnected`
   */
  report(lease: Lease, now: number): Promise<boolean>
  /** Replaces the previous report. Idempotent. */
  recordHealth(lease: Lease, report: HealthReport, now: number): Promise<void>
  findHealth(id: InstanceId, now: number): Promise<ConnectionHealth>
}
