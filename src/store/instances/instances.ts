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
  /** `online` for a sandbox instance, which links by itself; `idle` for a number that a person will link. */
  goal: ConnectionGoal
}

export interface Instances {
  create(instance: NewInstance, now: number): Promise<Instance>
  /** Null if it does not exist or was deleted. The other methods treat a deleted instance in the same way. */
  find(id: InstanceId): Promise<Instance | null>
  list(page: PageRequest, filter?: { search?: string | undefined }): Promise<Page<Instance>>
  rename(id: InstanceId, name: string): Promise<Instance | null>
  /** False if there is no such instance. */
  replaceToken(id: InstanceId, tokenDigest: Uint8Array): Promise<boolean>
  /**
   * Marks the instance as deleted, invalidates its token, erases its WhatsApp credentials and increments the lease's epoch,
   * which fences late writes of its connection; all in one commit. Its pending deliveries stay.
   * False if there is no such instance.
   */
  delete(id: InstanceId, now: number): Promise<boolean>
  /**
   * The last step of a deletion: erases every row of a deleted instance, in several commits. Does nothing and returns false
   * while a message is queued or a delivery is unfinished.
   */
  erase(lease: Lease): Promise<boolean>
  findWebhook(id: InstanceId): Promise<Webhook | null>
  /** Sets the URL for new events (null: they are stored but not posted). Existing deliveries keep their URL. */
  setWebhookUrl(id: InstanceId, url: string | null): Promise<Webhook | null>
  /** The former secret signs in addition to the new one until 24 h after `now`. */
  replaceWebhookSecret(id: InstanceId, secret: string, now: number): Promise<Webhook | null>
  /** When the current webhook secret was set; null if it is the original one. */
  findSecretChangedAt(id: InstanceId): Promise<number | null>
  /** The secrets that sign at `now`. Also found for a deleted instance, while its rows exist. */
  findSigningSecrets(id: InstanceId, now: number): Promise<SigningSecrets | null>
}
