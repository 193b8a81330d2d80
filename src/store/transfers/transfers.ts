import type { InstanceId } from '../../domain/ids.ts'
import type { NewInstance } from '../instances/instances.ts'

export interface TransferredRow {
  type: string
  id: string
  value: Uint8Array
}

export interface ImportedInstance extends Omit<NewInstance, 'goal' | 'kind'> {
  /** The linked number, digits only. */
  phone: string
  webhookUrl: string | null
  /** The credentials, as `Credentials` stores them. */
  rows: readonly TransferredRow[]
}

export interface LinkedInstance {
  id: InstanceId
  name: string
}

export type ImportOutcome =
  | { kind: 'imported'; id: InstanceId }
  /** The number is already linked to this instance. Nothing was changed. */
  | ({ kind: 'known' } & LinkedInstance)

export type ExportOutcome =
  | { kind: 'exported'; phone: string; rows: TransferredRow[] }
  /** A node runs the instance. Nothing was changed. */
  | { kind: 'running' }
  /** There is no such instance, it is a sandbox, or no number is linked to it. Nothing was changed. */
  | { kind: 'not_linked' }

/** Imports linked numbers from other programs and exports them. Two programs that use the same session destroy it. */
export interface Transfers {
  /** The instance that the number is linked to, even if it is stopped. */
  findLinked(phone: string): Promise<LinkedInstance | null>
  /** Creates the instance, with its credentials, in one commit. It stays `stopped` until somebody connects it. */
  import(instance: ImportedInstance, now: number): Promise<ImportOutcome>
  /**
   * Stops the instance (cause `exported`) and reads its credentials, in one commit. From then on `requestConnect` needs a confirmation.
   * Can be repeated.
   */
  export(id: InstanceId, now: number): Promise<ExportOutcome>
}
