import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { sandboxPhoneSchema } from '../../resources/conversation/conversation.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { getSandboxOrRefuse, instanceParams } from '../instances/instance-params.ts'

export function switchSandboxPhone(api: Api, context: ApiContext): void {
  const { sandbox } = context
  api.put(
    '/instances/:id/sandbox/phone',
    {
      schema: {
        operationId: 'switchSandboxPhone',
        summary: 'Switch the simulated phone on or off',
        description:
          'While the phone is off, the simulated WhatsApp refuses the connection: the instance is `reconnecting`, then ' +
          '`disconnected`. A restart of the service, or a move to another node, switches the phone on.',
        tags: ['Sandbox'],
        params: instanceParams,
        body: sandboxPhoneSchema,
        response: { 200: dataOf(sandboxPhoneSchema, 'The current state of the phone.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request', 'not_a_sandbox', 'sandbox_disabled'] },
    },
    async request => {
      const { id } = await getSandboxOrRefuse(context.store, request.params.id)
      if (!sandbox.enabled) throw new Refusal('sandbox_disabled')
      await sandbox.switchPhone(id, request.body.on)
      return { data: { on: request.body.on } }
    },
  )
}
