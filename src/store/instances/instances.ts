import type { ConnectionGoal, ConnectionState } from '../../domain/connection/connection.ts'
import type { Webhook } from '../../domain/events/endpoint.ts'
import type { InstanceId } from '../../domain/ids.ts'
import type { Instance, InstanceKind } from '../../domain/instance.ts'
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

/** `traffic`: by the messages sent and received since `trafficSince`, busiest first. */
export const INSTANCE_ORDERS = ['newest', 'name', 'traffic'] as const
type InstanceOrder = (typeof INSTANCE_ORDERS)[number]

export interface InstanceFilter {
  /** Only these; null or absent: all. */
  ids?: readonly InstanceId[] | null | undefined
  /** Part of a name, ID or number, without regard to case and accents. */
  search?: string | undefined
  /** The current state. */
  state?: ConnectionState | undefined
  /** Default: newest first. */
  sort?: InstanceOrder | undefined
  /** The start of the period for the order by traffic, milliseconds since 1970. Lists with the same moment share one count. */
  trafficSince?: number | undefined
}

/** What a search in all instances looks for. */
export type Held = { kind: 'message' | 'event'; id: string } | { kind: 'number'; number: string }

export const MAX_HOLDING = 20

export interface Instances {
  create(instance: NewInstance, now: number): Promise<Instance>
  /**
   * Null if the instance does not exist or was deleted. The other methods except `erase` treat a deleted instance in
   * the same way.
   */
  find(id: InstanceId): Promise<Instance | null>
  list(page: PageRequest, filter?: InstanceFilter): Promise<Page<Instance>>
  /**
   * The instances that have this message (sent or received), this event, or this number as a contact or a recent
   * look-up. At most `MAX_HOLDING`.
   * @param ids only these instances
   */
  listHolding(held: Held, ids?: readonly InstanceId[] | null): Promise<InstanceId[]>
  rename(id: InstanceId, name: string): Promise<Instance | null>
  /** False if there is no such instance. */
  replaceToken(id: InstanceId, tokenDigest: Uint8Array): Promise<boolean>
  /**
   * Marks the instance and its endpoints as deleted, invalidates its token, erases its API keys and WhatsApp
   * credentials, and increments the lease's epoch, which fences late writes of its connection. All this is one commit.
   * Pending deliveries stay, and the last events still go to these endpoints. False if there is no such instance.
   */
  delete(id: InstanceId, now: number): Promise<boolean>
  /**
   * The last step of a deletion: erases every row of a deleted instance, in several commits. Does nothing and returns false
   * while the instance has a queued message, an unfinished delivery or a file.
   */
  erase(lease: Lease): Promise<boolean>
  findWebhook(id: InstanceId): Promise<Webhook | null>
  /**
   * Sets the URL of the default endpoint for new events. Null removes the endpoint. Existing deliveries keep their URL.
   * The other settings of the endpoint are changed through `Endpoints`.
   */
  setWebhookUrl(id: InstanceId, url: string | null): Promise<Webhook | null>
}
