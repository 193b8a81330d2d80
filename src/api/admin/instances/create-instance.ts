import { Type } from 'typebox'
import { newInstanceId } from '../../../domain/ids.ts'
import type { InstanceKind } from '../../../domain/instance.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { parseName, tokenDigest } from '../../input.ts'
import { createdInstanceSchema, instanceView, kindSchema, nameSchema } from '../../resources/instance.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { noteForAudit } from '../audit/record-changes.ts'
import { newToken, newWebhookSecret } from '../secrets.ts'

const DEFAULT_NAMES: Readonly<Record<InstanceKind, string>> = { whatsapp: 'WhatsApp', sandbox: 'Sandbox' }

const bodySchema = Type.Object(
  { name: Type.Optional(nameSchema), kind: Type.Optional(kindSchema) },
  { title: 'InstanceToCreate' },
)

export function createInstance(api: Api, { store, sandbox, now }: ApiContext): void {
  api.post(
    '/instances',
    {
      schema: {
        operationId: 'createInstance',
        summary: 'Create an instance',
        description:
          'A `whatsapp` instance has to be linked to a phone. A `sandbox` instance links itself to a simulated phone.',
        tags: ['Instances'],
        body: bodySchema,
        response: { 201: dataOf(createdInstanceSchema, 'Created. The token is shown only once.') },
      },
      config: { refusals: ['invalid_request', 'sandbox_disabled'], optionalBody: true },
    },
    async (request, reply) => {
      const { kind = 'whatsapp' } = request.body
      const name = parseName('name', request.body.name ?? DEFAULT_NAMES[kind])
      if (kind === 'sandbox' && !sandbox.enabled) throw new Refusal('sandbox_disabled')
      const token = newToken()
      const id = newInstanceId()
      noteForAudit(request, { name, kind }, id)
      const instance = await store.instances.create(
        {
          id,
          name,
          kind,
          tokenDigest: Buffer.from(tokenDigest(token), 'hex'),
          webhookSecret: newWebhookSecret(),
          goal: kind === 'sandbox' ? 'online' : 'idle',
        },
        now(),
      )
      return reply.code(201).send({ data: { ...instanceView(instance), token } })
    },
  )
}
