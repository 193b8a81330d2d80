import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { instanceParams } from './instance-params.ts'

export function deleteInstance(api: Api, { store, now }: ApiContext): void {
  api.delete(
    '/instances/:id',
    {
      schema: {
        operationId: 'deleteInstance',
        summary: 'Delete an instance',
        description:
          'Invalidates the token, erases the credentials and unlinks the number. Queued messages fail with ' +
          '`instance_deleted` or `unconfirmed`. Pending deliveries are completed.',
        tags: ['Instances'],
        params: instanceParams,
        response: { 204: Type.Null({ description: 'Deleted.' }) },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async (request, reply) => {
      const { id } = request.params
      if (!isId(id) || !(await store.instances.delete(id, now()))) throw new Refusal('instance_not_found')
      return reply.code(204).send(null)
    },
  )
}
