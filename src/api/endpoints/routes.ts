import type { Api, ApiContext } from '../context.ts'
import { changeEndpoint, createEndpoint, deleteEndpoint, getEndpoint, listEndpoints } from './manage-endpoints.ts'
import { retryDelivery } from './retry-delivery.ts'
import type { EndpointScope } from './scope.ts'
import { replaceEndpointSecret, retryEndpoint, testEndpoint } from './use-endpoint.ts'

const OPERATIONS = [
  createEndpoint,
  listEndpoints,
  getEndpoint,
  changeEndpoint,
  deleteEndpoint,
  replaceEndpointSecret,
  testEndpoint,
  retryEndpoint,
  retryDelivery,
] as const

export function registerEndpoints(api: Api, context: ApiContext, scope: EndpointScope): void {
  for (const register of OPERATIONS) register(api, context, scope)
}
