import { Type } from 'typebox'
import type { PasskeyAnswer } from '../../../domain/connection/passkey.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Store } from '../../../store/store.ts'
import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { connectionSchema } from '../../resources/connection.ts'
import { assertionOf, assertionSchema } from '../../resources/passkey.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { instanceParams, orNotFound } from '../instances/instance-params.ts'
import { findConnection } from './find-connection.ts'

const refusals = ['instance_not_found', 'passkey_not_requested', 'passkey_expired'] as const

export function answerPasskey(api: Api, context: ApiContext): void {
  api.post(
    '/instances/:id/connection/passkey',
    {
      schema: {
        operationId: 'answerPasskey',
        summary: 'Answer with the passkey',
        description:
          "While `passkey.stage` is `assertion`: passes the passkey's answer on to WhatsApp. The connection shows " +
          'what follows.',
        tags: ['Connection'],
        params: instanceParams,
        body: Type.Object({ assertion: assertionSchema }, { title: 'PasskeyToAnswer' }),
        response: { 202: dataOf(connectionSchema, 'Accepted. The connection shows the progress.') },
      },
      config: { refusals: [...refusals, 'invalid_request'] },
    },
    async (request, reply) => {
      const { id } = request.params
      await passToOwner(context.store, id, { stage: 'assertion', assertion: assertionOf(request.body.assertion) })
      return reply.code(202).send({ data: orNotFound(await findConnection(context, request, id)) })
    },
  )
}

export function confirmPasskey(api: Api, context: ApiContext): void {
  api.post(
    '/instances/:id/connection/passkey/confirm',
    {
      schema: {
        operationId: 'confirmPasskey',
        summary: 'Confirm the code',
        description:
          'While `passkey.stage` is `code`: confirms that the phone shows the same code. If it shows another code, ' +
          'somebody may be intercepting the linking: call `logoutInstance` instead, which ends the linking.',
        tags: ['Connection'],
        params: instanceParams,
        response: { 202: dataOf(connectionSchema, 'Accepted. The connection shows the progress.') },
      },
      config: { refusals: [...refusals] },
    },
    async (request, reply) => {
      const { id } = request.params
      await passToOwner(context.store, id, { stage: 'code' })
      return reply.code(202).send({ data: orNotFound(await findConnection(context, request, id)) })
    },
  )
}

/** @throws Refusal if WhatsApp does not wait for this answer */
export async function passToOwner(
  { connections }: Pick<Store, 'connections'>,
  id: string,
  answer: PasskeyAnswer,
): Promise<void> {
  const outcome = isId(id) ? await connections.answerPasskey(id, answer) : 'no_instance'
  if (outcome === 'no_instance') throw new Refusal('instance_not_found')
  if (outcome === 'not_requested') throw new Refusal('passkey_not_requested')
  if (outcome === 'expired') throw new Refusal('passkey_expired')
}
