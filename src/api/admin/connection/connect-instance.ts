import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { checkNumber } from '../../input.ts'
import { connectionSchema } from '../../resources/connection.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { getInstanceOrRefuse, instanceParams, orNotFound } from '../instances/instance-params.ts'
import { findConnection } from './find-connection.ts'

const bodySchema = Type.Object(
  {
    phone: Type.Optional(
      Type.String({
        description:
          'The number to link by pairing code, digits only. Without it, the number is linked by QR code. The ' +
          'simulated phone of a sandbox instance types the code automatically, and the instance is linked to the ' +
          'number of that phone, whatever `phone` is.',
        examples: ['5511987654321'],
      }),
    ),
    confirmExported: Type.Optional(
      Type.Boolean({
        description:
          'Required to connect an instance whose session was exported. Two programs with one session destroy it, so stop the other one for good.',
      }),
    ),
  },
  { title: 'ConnectOptions' },
)

export function connectInstance(api: Api, context: ApiContext): void {
  const { store, sandbox } = context
  api.post(
    '/instances/:id/connect',
    {
      schema: {
        operationId: 'connectInstance',
        summary: 'Link the instance, or resume it',
        description:
          'Starts linking by QR code, or by pairing code if `phone` is set. Resumes a `stopped` instance. A logout that was requested ' +
          'before is carried out first.',
        tags: ['Connection'],
        params: instanceParams,
        body: bodySchema,
        response: { 202: dataOf(connectionSchema, 'Accepted. The connection shows the progress.') },
      },
      config: {
        refusals: ['instance_not_found', 'invalid_request', 'sandbox_disabled', 'session_exported'],
        optionalBody: true,
      },
    },
    async (request, reply) => {
      const { id } = request.params
      const { phone, confirmExported = false } = request.body
      if (phone !== undefined) checkNumber('phone', phone)
      const instance = await getInstanceOrRefuse(store, id)
      if (instance.kind === 'sandbox' && !sandbox.enabled) throw new Refusal('sandbox_disabled')
      if (!(await store.connections.requestConnect(id, phone ?? null, confirmExported))) {
        const isExported = (await store.connections.find(id))?.cause === 'exported'
        throw new Refusal(isExported ? 'session_exported' : 'instance_not_found')
      }
      return reply.code(202).send({ data: orNotFound(await findConnection(context, request, id)) })
    },
  )
}
