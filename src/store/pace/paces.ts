import type { InstanceId, MessageId } from '../../domain/ids.ts'
import type { Waiting } from '../../domain/message.ts'
import type { Pace } from '../../domain/pace.ts'
import type { Lease } from '../leases/leases.ts'

/** The pace of an instance and until when it makes messages wait. */
export interface PaceState {
  pace: Pace
  /** Nothing is sent before this moment. */
  opensAt: number
  /** Nothing is sent to new recipients before this moment. */
  newRecipientsAt: number
}

/**
 * `new_recipients`: the day's budget is spent, and only messages to new recipients wait. `gone`: the message has
 * failed, for example because it was cancelled.
 */
export type PaceTurn =
  | { kind: 'granted' }
  | { kind: 'waits'; for: 'all' | 'new_recipients'; until: number }
  | { kind: 'gone' }

export interface Paces {
  /** Null if the instance never had a pace. */
  find(instanceId: InstanceId): Promise<PaceState | null>
  /** Finds out what queued messages wait for. Messages that are being sent, or are not queued, are left out. */
  findWaits(instanceId: InstanceId, ids: readonly MessageId[], now: number): Promise<ReadonlyMap<MessageId, Waiting>>
  /**
   * The hint `pace` announces the new pace. Turns that the old pace granted still count.
   * @returns false if there is no such instance
   */
  set(instanceId: InstanceId, pace: Pace, now: number): Promise<boolean>
  /**
   * Grants a message its turn. A message that has to wait uses up nothing, and neither does one that got its turn within
   * the last minute. After a minute, or in the quiet hours, it needs another turn.
   * @param recipient the recipient, if it is not a contact; otherwise null
   */
  take(lease: Lease, message: MessageId, recipient: string | null, now: number): Promise<PaceTurn>
}
