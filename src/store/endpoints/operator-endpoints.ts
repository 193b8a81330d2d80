import type { OperatorEndpoint, SigningSecrets } from '../../domain/events/endpoint.ts'
import type { EndpointId, InstanceId } from '../../domain/ids.ts'
import type { EndpointSettings } from './endpoints.ts'

export interface NewOperatorEndpoint extends EndpointSettings {
  id: EndpointId
  secret: string
}

/** `old_nodes`: a node of the previous version runs. It would record events without deliveries to the endpoint. */
export type CreateOperatorOutcome =
  | { kind: 'created'; endpoint: OperatorEndpoint }
  | { kind: 'too_many' }
  | { kind: 'old_nodes' }

/** Counts over all instances, each up to `MAX_COUNTED_DELIVERIES`. */
export interface OperatorDeliveries {
  /** Unfinished deliveries. */
  waiting: number
  /** Unfinished deliveries that have failed before. */
  retrying: number
  givenUp: number
}

export const MAX_COUNTED_DELIVERIES = 1_000

/**
 * Endpoints that receive the events about the connections of all instances, including those that are created later. Their
 * deliveries belong to the instances: each instance's owner posts its own.
 */
export interface OperatorEndpoints {
  create(endpoint: NewOperatorEndpoint, now: number): Promise<CreateOperatorOutcome>
  /** By age. */
  list(): Promise<OperatorEndpoint[]>
  find(id: EndpointId): Promise<OperatorEndpoint | null>
  /** A new URL and a new filter apply to later events. Null if there is no such endpoint. */
  change(id: EndpointId, changes: Partial<EndpointSettings>): Promise<OperatorEndpoint | null>
  /** Its deliveries are still completed, even if it was inactive. False if there is no such endpoint. */
  delete(id: EndpointId, now: number): Promise<boolean>
  /** The former secret signs in addition to the new one until 24 h after `now`. Null if there is no such endpoint. */
  replaceSecret(id: EndpointId, secret: string, now: number): Promise<OperatorEndpoint | null>
  /** The secrets that sign at `now`. */
  findSecrets(id: EndpointId, now: number): Promise<SigningSecrets | null>
  /** The instances with unfinished deliveries to the endpoint, even if it was deleted. */
  listWaiting(id: EndpointId): Promise<InstanceId[]>
  countDeliveries(id: EndpointId, givenUpSince: number): Promise<OperatorDeliveries>
}
