import type { Api, ApiContext } from '../../context.ts'
import { connectionSchema } from '../../resources/connection.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { instanceParams, orNotFound } from '../instances/instance-params.ts'
import { findConnection } from './find-connection.ts'

export function getConnection(api: Api, context: ApiContext): void {
  api.get(
    '/instances/:id/connection',
    {
      schema: {
        operationId: 'getConnection',
        summary: 'Read the connection',
        description: 'The state, and the QR code or pairing code while linking.',
        tags: ['Connection'],
        params: instanceParams,
        response: { 200: dataOf(connectionSchema, 'The connection.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => ({ data: orNotFound(await findConnection(context, request, request.params.id)) }),
  )
}
