import type { InstanceId } from '../../domain/ids.ts'
import type { PhoneNumber } from '../../domain/recipient.ts'
import type { Lease } from '../leases/leases.ts'

/** The result of a look-up at WhatsApp. `address` is null if the number is not on WhatsApp. */
export interface LookedUpNumber {
  address: string | null
  expiresAt: number
}

export interface Numbers {
  /** Null if there is no result or it has expired: after 7 days for a number on WhatsApp, after 1 hour for another one. */
  find(instanceId: InstanceId, number: PhoneNumber, now: number): Promise<LookedUpNumber | null>
  record(lease: Lease, number: PhoneNumber, address: string | null, now: number): Promise<void>
  /**
   * Whether one of these numbers wrote to the instance (not only in a group), or a message to it was acknowledged, since the
   * account was linked. Contacts are recorded with that event and are not subject to retention.
   */
  isContact(instanceId: InstanceId, numbers: readonly PhoneNumber[]): Promise<boolean>
}
