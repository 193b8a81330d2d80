import { Type } from 'typebox'
import { isLinked } from '../../../domain/connection/connection.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { checkGroup, checkNumber, checkText, parseName } from '../../input.ts'
import { textSchema } from '../../resources/message.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { getSandboxOrRefuse, instanceParams } from '../instances/instance-params.ts'

const bodySchema = Type.Object(
  {
    from: Type.String({ description: "The simulated contact's number, digits only.", examples: ['5511912345678'] }),
    text: textSchema,
    group: Type.Optional(
      Type.String({
        description: 'The group to write in, as `digits@g.us`.',
        examples: ['120363041234567890@g.us'],
      }),
    ),
    name: Type.Optional(Type.String({ description: 'The push name: 1 to 100 characters.', examples: ['Ana'] })),
  },
  { title: 'SimulatedMessage' },
)

const writtenSchema = Type.Object({ id: Type.String({ description: "WhatsApp's ID of the message." }) })

export function writeAsContact(api: Api, { store, sandbox }: ApiContext): void {
  api.post(
    '/instances/:id/sandbox/incoming',
    {
      schema: {
        operationId: 'writeAsContact',
        summary: 'Write to a sandbox instance',
        description:
          'A simulated contact writes to the instance, and `message.received` follows. While no number is linked, the call ' +
          'is refused with `instance_not_connected`.',
        tags: ['Sandbox'],
        params: instanceParams,
        body: bodySchema,
        response: { 202: dataOf(writtenSchema, 'Handed to the simulated network.') },
      },
      config: {
        refusals: [
          'instance_not_found',
          'invalid_request',
          'not_a_sandbox',
          'instance_not_connected',
          'sandbox_disabled',
        ],
      },
    },
    async (request, reply) => {
      const { from, text, group, name } = request.body
      checkNumber('from', from)
      checkText(text)
      if (group !== undefined) checkGroup('group', group)
      const pushName = name === undefined ? undefined : parseName('name', name)
      const instance = await getSandboxOrRefuse(store, request.params.id)
      if (!sandbox.enabled) throw new Refusal('sandbox_disabled')
      if (!isLinked(instance.state)) throw new Refusal('instance_not_connected')
      const written = await sandbox.writeAs(instance.id, { from, text, group, name: pushName })
      return reply.code(202).send({ data: { id: written.id } })
    },
  )
}
