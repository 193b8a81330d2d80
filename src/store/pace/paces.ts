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
 * `new_recipients`: the day's budget is spent, and only messages to new recipients wait. `gone`: the message has failed meanwhile, for
 * example because it was cancelled. It uses up nothing.
 */
export type PaceTurn =
  | { kind: 'granted' }
  | { kind: 'waits'; for: 'all' | 'new_recipients'; until: number }
  | { kind: 'gone' }

export interface Paces {
  /** Null if the instance never had a pace. */
  find(instanceId: InstanceId): Promise<PaceState | null>
  /** Finds what queued messages wait for, from their rows and others. Messages that are being sent, or are not queued, are left out. */
  findWaits(instanceId: InstanceId, ids: readonly MessageId[], now: number): Promise<ReadonlyMap<MessageId, Waiting>>
  /** The hint `pace` announces it. What was used up under the old pace still counts. @returns false if there is no such instance */
  set(instanceId: InstanceId, pace: Pace, now: number): Promise<boolean>
  /**
   * Grants a message its turn, once: the turn of a message that has one is granted again and uses up nothing. A message that has to
   * wait uses up nothing.
   * @param recipient of a message to somebody who is not a contact; else null
   */
  take(lease: Lease, message: MessageId, recipient: string | null, now: number): Promise<PaceTurn>
}
