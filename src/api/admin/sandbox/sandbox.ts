import { Type } from 'typebox'
import { isLinked } from '../../../domain/connection/connection.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { checkGroup, checkNumber, checkText, parseName } from '../../input.ts'
import { sandboxPhoneSchema } from '../../resources/conversation/conversation.ts'
import { textSchema } from '../../resources/message.ts'
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
          '`disconnected`. Messages from other sandbox instances wait until it is on. A restart of the service, or a move to ' +
          'another node, switches the phone on.',
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
