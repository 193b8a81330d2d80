import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { connectionSchema } from '../../resources/connection.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { instanceParams, orNotFound } from '../instances/instance-params.ts'
import { findConnection } from './find-connection.ts'

export function logoutInstance(api: Api, context: ApiContext): void {
  const { store } = context
  api.post(
    '/instances/:id/logout',
    {
      schema: {
        operationId: 'logoutInstance',
        summary: 'Log the number out',
        description:
          'Queued messages fail with `instance_logged_out`, or with `unconfirmed` if they may have been sent. If WhatsApp has not ' +
          'confirmed the logout within 8 s, the cause is `logout_unconfirmed`: the phone may still show the device.',
        tags: ['Connection'],
        params: instanceParams,
        response: { 202: dataOf(connectionSchema, 'Accepted. The connection shows the progress.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async (request, reply) => {
      const { id } = request.params
      if (!isId(id) || !(await store.connections.requestLogout(id))) throw new Refusal('instance_not_found')
      return reply.code(202).send({ data: orNotFound(await findConnection(context, request, id)) })
    },
  )
}
