import type { Api, ApiContext } from '../../context.ts'
import { sandboxPhoneSchema } from '../../resources/conversation/conversation.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { getSandboxOrRefuse, instanceParams } from '../instances/instance-params.ts'

export function getSandboxPhone(api: Api, context: ApiContext): void {
  api.get(
    '/instances/:id/sandbox/phone',
    {
      schema: {
        operationId: 'getSandboxPhone',
        summary: 'Read whether the simulated phone is on',
        tags: ['Sandbox'],
        params: instanceParams,
        response: { 200: dataOf(sandboxPhoneSchema, 'The phone.') },
      },
      config: { refusals: ['instance_not_found', 'not_a_sandbox'] },
    },
    async request => {
      const { id } = await getSandboxOrRefuse(context.store, request.params.id)
      return { data: { on: await context.sandbox.isPhoneOn(id) } }
    },
  )
}
