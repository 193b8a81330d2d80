import type { Api, ApiContext } from '../../context.ts'
import { instanceSchema, instanceView } from '../../resources/instance.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { getInstanceOrRefuse, instanceParams } from './instance-params.ts'

export function getInstanceById(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id',
    {
      schema: {
        operationId: 'getInstanceById',
        summary: 'Read an instance',
        tags: ['Instances'],
        params: instanceParams,
        response: { 200: dataOf(instanceSchema, 'The instance.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => ({ data: instanceView(await getInstanceOrRefuse(store, request.params.id)) }),
  )
}
