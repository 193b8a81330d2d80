import type { InstanceId } from '../../domain/ids.ts'
import type { Lease } from '../leases/leases.ts'

/** WhatsApp credentials and Signal keys: opaque bytes by type and ID, encrypted at rest. */
export interface Credentials {
  get(instanceId: InstanceId, type: string, ids: readonly string[]): Promise<Map<string, Uint8Array>>
  /** Applies all changes or none. A null value deletes. */
  set(lease: Lease, changes: readonly { type: string; id: string; value: Uint8Array | null }[]): Promise<void>
  /** Deletes all credentials and the directory of the account, in several commits. After a failure it can be repeated. */
  clear(lease: Lease): Promise<void>
}
