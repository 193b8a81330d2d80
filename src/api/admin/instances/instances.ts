import { Type } from 'typebox'
import { isLinked } from '../../../domain/connection/connection.ts'
import { newInstanceId } from '../../../domain/ids.ts'
import type { InstanceKind } from '../../../domain/instance.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { isId, parseName, tokenDigest } from '../../input.ts'
import {
  createdInstanceSchema,
  instanceSchema,
  instanceView,
  kindSchema,
  nameSchema,
  tokenSchema,
} from '../../resources/instance.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { noteForAudit } from '../audit/record-changes.ts'
import { newToken, newWebhookSecret } from '../secrets.ts'
import { getInstanceOrRefuse, instanceParams, orNotFound } from './instance-params.ts'

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

export function deleteInstance(api: Api, { store, now, logger }: ApiContext): void {
  api.delete(
    '/instances/:id',
    {
      schema: {
        operationId: 'deleteInstance',
        summary: 'Delete an instance',
        description:
          'Invalidates the token and erases the credentials. Logs the number out if the instance is connected. Queued messages ' +
          'fail with `instance_deleted` or `unconfirmed`. Pending deliveries are completed.',
        tags: ['Instances'],
        params: instanceParams,
        response: { 204: Type.Null({ description: 'Deleted.' }) },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async (request, reply) => {
      const { id } = request.params
      const { state } = await getInstanceOrRefuse(store, id)
      if (!(await store.instances.delete(id, now()))) throw new Refusal('instance_not_found')
      // Without its credentials no connection can be opened for a logout.
      if (isLinked(state) && state !== 'connected') {
        const action = 'If the phone still shows this device under Linked devices, remove it there.'
        logger.warn({ instanceId: id, state, action }, 'instance.deleted_unconnected')
      }
      return reply.code(204).send(null)
    },
  )
}

export function replaceToken(api: Api, { store }: ApiContext): void {
  api.post(
    '/instances/:id/token',
    {
      schema: {
        operationId: 'replaceToken',
        summary: 'Create a new token',
        description: 'Invalidates the old token at once, on every node.',
        tags: ['Instances'],
        params: instanceParams,
        response: { 200: dataOf(Type.Object({ token: tokenSchema }), 'The new token, shown only once.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = request.params
      const token = newToken()
      if (!isId(id) || !(await store.instances.replaceToken(id, Buffer.from(tokenDigest(token), 'hex')))) {
        throw new Refusal('instance_not_found')
      }
      return { data: { token } }
    },
  )
}
