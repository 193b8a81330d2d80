import type { ApiContext } from '../../context.ts'
import type { EndpointScope } from '../../endpoints/scope.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

/** The endpoints of any instance. */
export function instanceEndpoints({ store }: ApiContext): EndpointScope {
  return {
    path: '/instances/:id/endpoints',
    deliveryPath: '/instances/:id/deliveries',
    noun: 'InstanceEndpoint',
    deliveryNoun: 'InstanceDelivery',
    tags: ['Webhooks'],
    deliveryTags: ['Event log'],
    params: instanceParams.properties,
    deliveryParams: instanceParams.properties,
    onRequest: [],
    config: {},
    deliveryConfig: {},
    reach: 'all',
    refusals: ['instance_not_found'],
    deliveryRefusals: ['instance_not_found'],
    instanceOf: async request => (await getInstanceOrRefuse(store, (request.params as { id: string }).id)).id,
  }
}
