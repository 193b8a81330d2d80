import type { InstanceId } from '../../domain/ids.ts'
import type { PhoneNumber } from '../../domain/recipient.ts'
import type { Lease } from '../leases/leases.ts'

/** What WhatsApp said of a number; `address` null: it is not on WhatsApp. */
export interface LookedUpNumber {
  address: string | null
  expiresAt: number
}

export interface Numbers {
  /** Null when not asked yet, or too long ago: 7 days for a number found, 1 hour for one not found. */
  find(instanceId: InstanceId, number: PhoneNumber, now: number): Promise<LookedUpNumber | null>
  record(lease: Lease, number: PhoneNumber, address: string | null, now: number): Promise<void>
  /**
   * Whether since the account was linked one of these numbers has written to the instance (not merely in a group), or a
   * message to it was acknowledged. Noted in the commit of that event; it outlives retention.
   */
  isContact(instanceId: InstanceId, numbers: readonly PhoneNumber[]): Promise<boolean>
}
