import type { ConnectionGoal } from '../../domain/connection.ts'
import type { InstanceId } from '../../domain/ids.ts'
import type { Instance, InstanceKind, SigningSecrets, Webhook } from '../../domain/instance.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { Lease } from '../leases/leases.ts'

export interface NewInstance {
  id: InstanceId
  name: string
  kind: InstanceKind
  tokenDigest: Uint8Array
  webhookSecret: string
  /** `online` for a sandbox, which links by itself; `idle` for a number that somebody will link. */
  goal: ConnectionGoal
}

export interface Instances {
  create(instance: NewInstance, now: number): Promise<Instance>
  /** Null also for a deleted one, as everywhere in this interface. */
  find(id: InstanceId): Promise<Instance | null>
  list(page: PageRequest, filter?: { search?: string | undefined }): Promise<Page<Instance>>
  rename(id: InstanceId, name: string): Promise<Instance | null>
  /** False when there is no such instance. */
  replaceToken(id: InstanceId, tokenDigest: Uint8Array): Promise<boolean>
  /**
   * One commit: the token is dead, the WhatsApp credentials are erased, the lease's epoch is raised so that no late
   * write of its connection gets through, and the instance is marked deleted. What is owed to its webhook stays.
   * False when there is no such instance.
   */
  delete(id: InstanceId, now: number): Promise<boolean>
  /**
   * The last step of a deletion: erases every row of a deleted instance, in small steps. Does nothing and returns
   * false while a message is queued or a delivery is owed.
   */
  erase(lease: Lease): Promise<boolean>
  findWebhook(id: InstanceId): Promise<Webhook | null>
  /** Binds the events made from now on to `url` (null: they are kept and not posted). Earlier deliveries stay. */
  setWebhookUrl(id: InstanceId, url: string | null): Promise<Webhook | null>
  /** The old secret stays beside the new one for 24 h from `now`. */
  replaceWebhookSecret(id: InstanceId, secret: string, now: number): Promise<Webhook | null>
  /** When the present webhook secret came into force; null for the one that the instance was made with. */
  findSecretChangedAt(id: InstanceId): Promise<number | null>
  /** What to sign with at `now`; also for a deleted instance that still owes deliveries. */
  findSigningSecrets(id: InstanceId, now: number): Promise<SigningSecrets | null>
}
