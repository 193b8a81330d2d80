import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { isId, tokenDigest } from '../../input.ts'
import { tokenSchema } from '../../resources/instance.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { newToken } from '../secrets.ts'
import { instanceParams } from './instance-params.ts'

export function replaceToken(api: Api, { store }: ApiContext): void {
  api.post(
    '/instances/:id/token',
    {
      schema: {
        operationId: 'replaceToken',
        summary: 'Create a new token',
        description: 'Invalidates the old token at once, on every node.',
        tags: ['Instances'],
        params: instanceParams,
        response: { 200: dataOf(Type.Object({ token: tokenSchema }), 'The new token, shown only once.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = request.params
      const token = newToken()
      if (!isId(id) || !(await store.instances.replaceToken(id, Buffer.from(tokenDigest(token), 'hex')))) {
        throw new Refusal('instance_not_found')
      }
      return { data: { token } }
    },
  )
}
