import type { InstanceId } from '../../domain/ids.ts'
import type { Lease } from '../leases/leases.ts'

/** WhatsApp credentials and Signal keys: opaque bytes by type and id, encrypted at rest. */
export interface Credentials {
  get(instanceId: InstanceId, type: string, ids: readonly string[]): Promise<Map<string, Uint8Array>>
  /** All changes or none. A null value deletes. */
  set(lease: Lease, changes: readonly { type: string; id: string; value: Uint8Array | null }[]): Promise<void>
  /** All of it, and who the account's contacts are. */
  clear(lease: Lease): Promise<void>
}
