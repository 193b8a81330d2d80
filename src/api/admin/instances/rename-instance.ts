import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { isId, parseName } from '../../input.ts'
import { instanceSchema, instanceView, nameSchema } from '../../resources/instance.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { noteForAudit } from '../audit/record-changes.ts'
import { instanceParams, orNotFound } from './instance-params.ts'

export function renameInstance(api: Api, { store }: ApiContext): void {
  api.patch(
    '/instances/:id',
    {
      schema: {
        operationId: 'renameInstance',
        summary: 'Rename an instance',
        tags: ['Instances'],
        params: instanceParams,
        body: Type.Object({ name: nameSchema }, { title: 'InstanceName' }),
        response: { 200: dataOf(instanceSchema, 'The instance with its new name.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { id } = request.params
      const name = parseName('name', request.body.name)
      noteForAudit(request, { name })
      return { data: instanceView(orNotFound(isId(id) ? await store.instances.rename(id, name) : null)) }
    },
  )
}
