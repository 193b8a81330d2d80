import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { instanceIdSchema } from '../../resources/instance.ts'
import { getInstanceOrRefuse } from '../instances/instance-params.ts'

const keyParams = Type.Object({ id: instanceIdSchema, keyId: Type.String({ description: 'The key.' }) })

export function revokeKey(api: Api, { store }: ApiContext): void {
  api.delete(
    '/instances/:id/keys/:keyId',
    {
      schema: {
        operationId: 'revokeKey',
        summary: 'Revoke an API key',
        description: 'Takes effect at once, on every node.',
        tags: ['API keys'],
        params: keyParams,
        response: { 204: Type.Null({ description: 'Revoked.' }) },
      },
      config: { refusals: ['instance_not_found', 'key_not_found'] },
    },
    async (request, reply) => {
      const { keyId } = request.params
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      if (!isId(keyId) || !(await store.apiKeys.revoke(id, keyId))) throw new Refusal('key_not_found')
      return reply.code(204).send(null)
    },
  )
}
