import type { EndpointScope } from '../endpoints/scope.ts'
import { ownInstanceParams, requireOwnInstance } from './own-instance.ts'

/** The endpoints of the token's instance. */
export const OWN_ENDPOINTS: EndpointScope = {
  path: '/webhooks/:instanceId/endpoints',
  deliveryPath: '/deliveries',
  noun: 'Endpoint',
  deliveryNoun: 'Delivery',
  tags: ['Webhook'],
  deliveryTags: ['Events'],
  params: ownInstanceParams.properties,
  deliveryParams: {},
  onRequest: [requireOwnInstance],
  config: { scope: 'webhooks' },
  deliveryConfig: { scope: 'events' },
  reach: 'own',
  refusals: ['instance_not_found'],
  deliveryRefusals: [],
  instanceOf: request => request.instanceId,
}
