import { Type } from 'typebox'
import { ALL_EVENTS, EVENT_GROUPS, isPattern } from '../../domain/events/endpoint.ts'
import { newEndpointId } from '../../domain/ids.ts'
import { Refusal } from '../../domain/refusal.ts'
import { noteForAudit } from '../admin/audit/record-changes.ts'
import { newWebhookSecret } from '../admin/secrets.ts'
import type { Api, ApiContext } from '../context.ts'
import { invalid } from '../http/error-handler.ts'
import { checkNote, checkWebhookUrl, isId } from '../input.ts'
import { refuseBesideOldNodes } from '../refusals.ts'
import {
  endpointChangesSchema,
  endpointIdSchema,
  endpointSchema,
  endpointView,
  newEndpointSchema,
} from '../resources/events/endpoint.ts'
import { pageOf } from '../resources/page.ts'
import { dataOf } from '../resources/schema-kit.ts'
import { type EndpointScope, endpointIdOf, getEndpointOrRefuse } from './scope.ts'

export function createEndpoint(api: Api, context: ApiContext, scope: EndpointScope): void {
  const { store, now } = context
  api.post(
    scope.path,
    {
      onRequest: scope.onRequest,
      schema: {
        operationId: `create${scope.noun}`,
        summary: 'Create an endpoint',
        description: 'The endpoint receives events created from now on. An instance has at most ten endpoints.',
        tags: scope.tags,
        params: Type.Object(scope.params),
        body: newEndpointSchema,
        response: { 201: dataOf(endpointSchema, 'The endpoint, with its secret.') },
      },
      config: { ...scope.config, refusals: [...scope.refusals, 'invalid_request', 'too_many_endpoints'] },
    },
    async (request, reply) => {
      const { url, events = [ALL_EVENTS], active = true, description = null } = request.body
      checkEndpoint({ url, events, description }, context)
      const instanceId = await scope.instanceOf(request)
      const id = newEndpointId()
      noteForAudit(request, { endpointId: id })
      const endpoint = { instanceId, id, secret: newWebhookSecret(), url, events, active, description }
      const outcome = await store.endpoints.create(endpoint, now())
      if (outcome.kind === 'no_instance') throw new Refusal('instance_not_found')
      if (outcome.kind === 'too_many') throw new Refusal('too_many_endpoints')
      if (outcome.kind === 'old_nodes') return refuseBesideOldNodes()
      return reply.code(201).send({ data: endpointView(outcome.endpoint, now()) })
    },
  )
}

export function listEndpoints(api: Api, { store, now }: ApiContext, scope: EndpointScope): void {
  api.get(
    scope.path,
    {
      onRequest: scope.onRequest,
      schema: {
        operationId: `list${scope.noun}s`,
        summary: 'List the endpoints of an instance',
        tags: scope.tags,
        params: Type.Object(scope.params),
        response: { 200: pageOf(endpointSchema, 'The default endpoint first, then by age.') },
      },
      config: { ...scope.config, refusals: scope.refusals },
    },
    async request => {
      const endpoints = await store.endpoints.list(await scope.instanceOf(request))
      return { data: endpoints.map(endpoint => endpointView(endpoint, now())), nextCursor: null }
    },
  )
}

export function getEndpoint(api: Api, context: ApiContext, scope: EndpointScope): void {
  api.get(
    `${scope.path}/:endpointId`,
    {
      onRequest: scope.onRequest,
      schema: {
        operationId: `get${scope.noun}`,
        summary: 'Read an endpoint',
        tags: scope.tags,
        params: Type.Object({ ...scope.params, endpointId: endpointIdSchema }),
        response: { 200: dataOf(endpointSchema, 'The endpoint.') },
      },
      config: { ...scope.config, refusals: [...scope.refusals, 'endpoint_not_found'] },
    },
    async request => {
      const endpoint = await getEndpointOrRefuse(context, await scope.instanceOf(request), request)
      return { data: endpointView(endpoint, context.now()) }
    },
  )
}

export function changeEndpoint(api: Api, context: ApiContext, scope: EndpointScope): void {
  const { store, now } = context
  api.patch(
    `${scope.path}/:endpointId`,
    {
      onRequest: scope.onRequest,
      schema: {
        operationId: `change${scope.noun}`,
        summary: 'Change, pause or resume an endpoint',
        description:
          'A new URL and a new filter apply to events created from now on. While `active` is false, deliveries are ' +
          'created and held.',
        tags: scope.tags,
        params: Type.Object({ ...scope.params, endpointId: endpointIdSchema }),
        body: endpointChangesSchema,
        response: { 200: dataOf(endpointSchema, 'The changed endpoint.') },
      },
      config: { ...scope.config, refusals: [...scope.refusals, 'endpoint_not_found', 'invalid_request'] },
    },
    async request => {
      const { url, events, active, description } = request.body
      checkEndpoint({ url, events, description }, context)
      const instanceId = await scope.instanceOf(request)
      const changes = {
        ...(url !== undefined && { url }),
        ...(events !== undefined && { events }),
        ...(active !== undefined && { active }),
        ...(description !== undefined && { description }),
      }
      const id = endpointIdOf(request)
      const outcome = isId(id) ? await store.endpoints.change(instanceId, id, changes) : null
      if (outcome?.kind === 'old_nodes') return refuseBesideOldNodes()
      if (outcome?.kind !== 'changed') throw new Refusal('endpoint_not_found')
      return { data: endpointView(outcome.endpoint, now()) }
    },
  )
}

export function deleteEndpoint(api: Api, { store, now }: ApiContext, scope: EndpointScope): void {
  api.delete(
    `${scope.path}/:endpointId`,
    {
      onRequest: scope.onRequest,
      schema: {
        operationId: `delete${scope.noun}`,
        summary: 'Delete an endpoint',
        description:
          'Later events are not posted to it. Its existing deliveries are still completed, even if it was paused.',
        tags: scope.tags,
        params: Type.Object({ ...scope.params, endpointId: endpointIdSchema }),
        response: { 204: Type.Null({ description: 'Deleted.' }) },
      },
      config: { ...scope.config, refusals: [...scope.refusals, 'endpoint_not_found'] },
    },
    async (request, reply) => {
      const instanceId = await scope.instanceOf(request)
      const id = endpointIdOf(request)
      if (!isId(id) || !(await store.endpoints.delete(instanceId, id, now()))) throw new Refusal('endpoint_not_found')
      return reply.code(204).send(null)
    },
  )
}

interface Settings {
  url?: string | undefined
  events?: readonly string[] | undefined
  description?: string | null | undefined
}

/** Checks what the schema cannot express. @throws Refusal */
export function checkEndpoint({ url, events = [], description }: Settings, context: ApiContext): void {
  if (url !== undefined) checkWebhookUrl(url, context.checkWebhookUrl)
  if (typeof description === 'string') checkNote('description', description)
  for (const [index, pattern] of events.entries()) {
    const allowed = `a kind of event, a group (${EVENT_GROUPS.join(', ')}) or ${ALL_EVENTS}`
    if (!isPattern(pattern)) throw invalid(`events.${index}`, `must be ${allowed}`)
  }
}
