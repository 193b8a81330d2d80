import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { endpointHealthSchema, endpointHealthView } from '../../resources/events/endpoint-health.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

const WEEK_MS = 7 * 24 * 60 * 60_000

export function listEndpointHealth(api: Api, { store, now }: ApiContext): void {
  api.get(
    '/instances/:id/endpoint-health',
    {
      schema: {
        operationId: 'listEndpointHealth',
        summary: 'List the endpoints of an instance with the state of their deliveries',
        description: 'Without secrets, so that every role may read it.',
        tags: ['Webhooks'],
        params: instanceParams,
        response: { 200: dataOf(Type.Array(endpointHealthSchema), 'The default endpoint first, then by age.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const endpoints = await store.endpoints.list(id)
      const ids = endpoints.map(endpoint => endpoint.id)
      const found = await store.statistics.endpoints(id, ids, now() - WEEK_MS)
      return { data: endpoints.map((endpoint, index) => endpointHealthView(endpoint, found[index]!, now())) }
    },
  )
}
