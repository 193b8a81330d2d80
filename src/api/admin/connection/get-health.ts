import type { Api, ApiContext } from '../../context.ts'
import { healthSchema, healthView } from '../../resources/health.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { instanceParams, orNotFound } from '../instances/instance-params.ts'
import { findConnection } from './find-connection.ts'

export function getHealth(api: Api, context: ApiContext): void {
  const { store, now } = context
  api.get(
    '/instances/:id/health',
    {
      schema: {
        operationId: 'getHealth',
        summary: 'Read the health of the connection',
        description: 'The state with its start and reason, and the last activity of WhatsApp.',
        tags: ['Connection'],
        params: instanceParams,
        response: { 200: dataOf(healthSchema, 'The health of the connection.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const connection = orNotFound(await findConnection(context, request, request.params.id))
      return { data: healthView(connection, await store.connections.findHealth(connection.instanceId, now())) }
    },
  )
}
