import type { InstanceId } from '../../domain/ids.ts'
import type { PhoneNumber } from '../../domain/recipients/recipient.ts'
import type { Lease } from '../leases/leases.ts'

/** The result of a look-up at WhatsApp. `address` is null if the number is not on WhatsApp. */
export interface LookedUpNumber {
  address: string | null
  expiresAt: number
}

/** An order is ignored after this time. Its caller waits for a shorter time. */
export const ORDER_LIVES_MS = 15_000

/** The detail of the hint `numbers` when an order was settled. */
export const SETTLED = 'settled'

/** `spent`: nothing was ordered, because only `left` numbers may be ordered until the budget is renewed. */
export type CheckOrder = { kind: 'ordered' } | { kind: 'spent'; left: number; renewsInMs: number }

export interface Numbers {
  /**
   * Null if there is no result or it has expired: after 7 days for a number on WhatsApp, otherwise after 1 hour, or once
   * a message was exchanged with the person.
   */
  find(instanceId: InstanceId, number: PhoneNumber, now: number): Promise<LookedUpNumber | null>
  /** The results of these numbers, as `find` returns them. */
  findMany(
    instanceId: InstanceId,
    numbers: readonly PhoneNumber[],
    now: number,
  ): Promise<Map<PhoneNumber, LookedUpNumber>>
  record(lease: Lease, number: PhoneNumber, address: string | null, now: number): Promise<void>
  /**
   * Whether one of these people wrote to the instance (not only in a group), or WhatsApp acknowledged a message to one
   * of them, since the account was linked. Contacts are recorded with that event and are not subject to retention.
   * @param names numbers and LIDs. A LID also finds a contact that is recorded under its number
   */
  isContact(instanceId: InstanceId, names: readonly string[]): Promise<boolean>

  /**
   * Orders look-ups, which the owner of the instance makes. Numbers that are already ordered do not count against the
   * budget. The hint `numbers` announces orders and their end.
   * @param perDay the budget of an instance for a day (UTC). It is spent in the same commit
   */
  order(instanceId: InstanceId, numbers: readonly PhoneNumber[], perDay: number): Promise<CheckOrder>
  /** Repeats the hint. */
  remind(instanceId: InstanceId): void
  /** The orders of the last 15 s, oldest first. */
  listOrders(instanceId: InstanceId): Promise<PhoneNumber[]>
  /** Removes the order. A result must be recorded before. */
  settleOrder(lease: Lease, number: PhoneNumber): Promise<void>
}
