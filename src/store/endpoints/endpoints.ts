import type { Endpoint, SigningSecrets } from '../../domain/events/endpoint.ts'
import type { EndpointId, InstanceId } from '../../domain/ids.ts'

export interface EndpointSettings {
  url: string
  events: readonly string[]
  active: boolean
  description: string | null
}

export interface NewEndpoint extends EndpointSettings {
  instanceId: InstanceId
  id: EndpointId
  secret: string
}

/** `old_nodes`: a node of the previous version is running and would not know the endpoint. */
export type CreateOutcome =
  | { kind: 'created'; endpoint: Endpoint }
  | { kind: 'no_instance' }
  | { kind: 'too_many' }
  | { kind: 'old_nodes' }

export type ChangeOutcome = { kind: 'changed'; endpoint: Endpoint } | { kind: 'no_endpoint' } | { kind: 'old_nodes' }

/** The state of an endpoint that an attempt needs. */
export interface PostingState {
  secrets: SigningSecrets
  /** False: the endpoint's deliveries are held. */
  active: boolean
}

/** The endpoints of instances. The default endpoint is the instance's webhook. It exists while it has a URL. */
export interface Endpoints {
  create(endpoint: NewEndpoint, now: number): Promise<CreateOutcome>
  /** The default endpoint first, then by age. Empty if there is no such instance. */
  list(instanceId: InstanceId): Promise<Endpoint[]>
  find(instanceId: InstanceId, id: EndpointId): Promise<Endpoint | null>
  /** A new URL and a new filter apply to later events. */
  change(instanceId: InstanceId, id: EndpointId, changes: Partial<EndpointSettings>): Promise<ChangeOutcome>
  /** Its deliveries are still completed, even if it was inactive. False if there is no such endpoint. */
  delete(instanceId: InstanceId, id: EndpointId, now: number): Promise<boolean>
  /** The former secret signs in addition to the new one until 24 h after `now`. False if there is no such endpoint. */
  replaceSecret(instanceId: InstanceId, id: EndpointId, secret: string, now: number): Promise<boolean>
  /**
   * The endpoints other than the default one. Deleted endpoints and operator endpoints are included if they have
   * unfinished deliveries. The endpoints of a deleted instance are included until it is erased, because its last events
   * are still posted to them.
   */
  listPosting(instanceId: InstanceId): Promise<EndpointId[]>
  /**
   * Finds an endpoint or operator endpoint, with the secrets that sign at `now`. Also finds a deleted endpoint, or one
   * of a deleted instance, while it has deliveries.
   */
  findPosting(instanceId: InstanceId, id: EndpointId, now: number): Promise<PostingState | null>
  /** When the current secret was set; null if it is the original one. */
  findSecretChangedAt(instanceId: InstanceId, id: EndpointId): Promise<number | null>
}
