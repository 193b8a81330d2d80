import { Type } from 'typebox'
import { Refusal } from '../../domain/refusal.ts'
import type { Api, ApiContext } from '../context.ts'
import { instanceProperties } from '../resources/instance.ts'
import { dataOf } from '../resources/schema-kit.ts'

const { id, name, state, reason, phone } = instanceProperties
const ownInstanceSchema = Type.Object({ id, name, state, reason, phone }, { title: 'OwnInstance' })

export function getInstance(api: Api, { store }: ApiContext): void {
  api.get(
    '/instance',
    {
      schema: {
        operationId: 'getInstance',
        summary: "Read the token's instance",
        description: 'Returns the instance of the token and whether it can send.',
        tags: ['Instance'],
        response: { 200: dataOf(ownInstanceSchema, 'The instance.') },
      },
      config: { scope: 'any' },
    },
    async request => {
      const instance = await store.instances.find(request.instanceId)
      if (!instance) throw new Refusal('invalid_token')
      const { id, name, state, reason, phone } = instance
      return { data: { id, name, state, reason, phone } }
    },
  )
}
