import type { InstanceId } from '../../domain/ids.ts'
import type { Lease } from '../leases/leases.ts'

/** Persistent state of the simulated network, by instance. */
export interface SandboxStorage {
  read(instanceId: InstanceId): Promise<ReadonlyMap<string, Uint8Array>>
  write(lease: Lease, changes: readonly { key: string; value: Uint8Array | null }[]): Promise<void>
}
