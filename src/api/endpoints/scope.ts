import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import type { TString } from 'typebox'
import type { Scope } from '../../domain/access.ts'
import type { Endpoint, Reach } from '../../domain/events/endpoint.ts'
import type { InstanceId } from '../../domain/ids.ts'
import { Refusal, type RefusalCode } from '../../domain/refusal.ts'
import type { ApiContext } from '../context.ts'
import { isId } from '../input.ts'

/** The same calls exist twice: with a token, for its own instance, and with the admin key, for any instance. */
export interface EndpointScope {
  /** The address of the instance's endpoints. */
  path: string
  /** The address of a delivery. */
  deliveryPath: string
  /** A part of the operation IDs: `listEndpoints` or `listInstanceEndpoints`. */
  noun: 'Endpoint' | 'InstanceEndpoint'
  deliveryNoun: 'Delivery' | 'InstanceDelivery'
  tags: string[]
  deliveryTags: string[]
  /** The parameters that name the instance in each of the addresses. */
  params: Record<string, TString>
  deliveryParams: Record<string, TString>
  /** The check of the instance in the path, if it does not need the store. */
  onRequest: onRequestHookHandler[]
  /** The scope that a key needs. */
  config: { scope?: Scope }
  deliveryConfig: { scope?: Scope }
  /** Which deliveries can be retried. */
  reach: Reach
  refusals: RefusalCode[]
  deliveryRefusals: RefusalCode[]
  /** @throws Refusal `instance_not_found` */
  instanceOf(request: FastifyRequest): Promise<InstanceId> | InstanceId
}

/** @throws Refusal `endpoint_not_found` */
export async function getEndpointOrRefuse(
  { store }: ApiContext,
  instanceId: InstanceId,
  request: FastifyRequest,
): Promise<Endpoint> {
  const id = endpointIdOf(request)
  const endpoint = isId(id) ? await store.endpoints.find(instanceId, id) : null
  if (endpoint === null) throw new Refusal('endpoint_not_found')
  return endpoint
}

export function endpointIdOf(request: FastifyRequest): string {
  return (request.params as { endpointId: string }).endpointId
}
