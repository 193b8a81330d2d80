import { Type } from 'typebox'
import { OPERATOR_EVENTS, OPERATOR_PREFIX, type OperatorEndpoint } from '../../../domain/events/endpoint.ts'
import { newEndpointId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { checkEndpoint } from '../../endpoints/manage-endpoints.ts'
import { isId } from '../../input.ts'
import { refuseBesideOldNodes } from '../../refusals.ts'
import {
  newOperatorEndpointSchema,
  type OperatorEndpointView,
  operatorEndpointChangesSchema,
  operatorEndpointParams,
  operatorEndpointSchema,
  operatorEndpointView,
} from '../../resources/events/operator-endpoint.ts'
import { pageOf } from '../../resources/page.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { noteForAudit } from '../audit/record-changes.ts'
import { newWebhookSecret } from '../secrets.ts'

const WEEK_MS = 7 * 24 * 60 * 60_000

const tags = ['Webhooks']

export function createOperatorEndpoint(api: Api, context: ApiContext): void {
  const { store, now } = context
  api.post(
    '/endpoints',
    {
      schema: {
        operationId: 'createOperatorEndpoint',
        summary: 'Create an operator endpoint',
        description:
          'Events about the connections of all instances, including those that are created later, are posted to it from now on. ' +
          'The instances and their tokens do not see it. There are at most ten.',
        tags,
        body: newOperatorEndpointSchema,
        response: { 201: dataOf(operatorEndpointSchema, 'The endpoint, with its secret.') },
      },
      config: { refusals: ['invalid_request', 'too_many_operator_endpoints'] },
    },
    async (request, reply) => {
      const { url, events = [OPERATOR_EVENTS], active = true, description = null } = request.body
      checkEndpoint({ url, description }, context)
      const id = newEndpointId(OPERATOR_PREFIX)
      noteForAudit(request, { endpointId: id })
      const endpoint = { id, secret: newWebhookSecret(), url, events, active, description }
      const outcome = await store.operatorEndpoints.create(endpoint, now())
      if (outcome.kind === 'too_many') throw new Refusal('too_many_operator_endpoints')
      if (outcome.kind === 'old_nodes') return refuseBesideOldNodes()
      return reply.code(201).send({ data: await viewOf(outcome.endpoint, context) })
    },
  )
}

export function listOperatorEndpoints(api: Api, context: ApiContext): void {
  api.get(
    '/endpoints',
    {
      schema: {
        operationId: 'listOperatorEndpoints',
        summary: 'List the operator endpoints',
        tags,
        response: { 200: pageOf(operatorEndpointSchema, 'All of them, oldest first.') },
      },
    },
    async () => {
      const endpoints = await context.store.operatorEndpoints.list()
      return { data: await Promise.all(endpoints.map(endpoint => viewOf(endpoint, context))), nextCursor: null }
    },
  )
}

export function getOperatorEndpoint(api: Api, context: ApiContext): void {
  api.get(
    '/endpoints/:id',
    {
      schema: {
        operationId: 'getOperatorEndpoint',
        summary: 'Read an operator endpoint',
        tags,
        params: operatorEndpointParams,
        response: { 200: dataOf(operatorEndpointSchema, 'The endpoint.') },
      },
      config: { refusals: ['endpoint_not_found'] },
    },
    async request => ({ data: await viewOf(await findOrRefuse(context, request.params.id), context) }),
  )
}

export function changeOperatorEndpoint(api: Api, context: ApiContext): void {
  api.patch(
    '/endpoints/:id',
    {
      schema: {
        operationId: 'changeOperatorEndpoint',
        summary: 'Change, pause or resume an operator endpoint',
        description:
          'A new URL and a new filter apply to events created from now on. While `active` is false, deliveries are ' +
          'held and new ones are collected.',
        tags,
        params: operatorEndpointParams,
        body: operatorEndpointChangesSchema,
        response: { 200: dataOf(operatorEndpointSchema, 'The changed endpoint.') },
      },
      config: { refusals: ['endpoint_not_found', 'invalid_request'] },
    },
    async request => {
      const { url, events, active, description } = request.body
      checkEndpoint({ url, description }, context)
      const changes = {
        ...(url !== undefined && { url }),
        ...(events !== undefined && { events }),
        ...(active !== undefined && { active }),
        ...(description !== undefined && { description }),
      }
      const { id } = request.params
      const endpoint = isId(id) ? await context.store.operatorEndpoints.change(id, changes) : null
      return { data: await viewOf(found(endpoint), context) }
    },
  )
}

export function deleteOperatorEndpoint(api: Api, { store, now }: ApiContext): void {
  api.delete(
    '/endpoints/:id',
    {
      schema: {
        operationId: 'deleteOperatorEndpoint',
        summary: 'Delete an operator endpoint',
        description:
          'Later events are not posted to it. The deliveries that it already has are still completed, even if it was paused.',
        tags,
        params: operatorEndpointParams,
        response: { 204: Type.Null({ description: 'Deleted.' }) },
      },
      config: { refusals: ['endpoint_not_found'] },
    },
    async (request, reply) => {
      const { id } = request.params
      if (!isId(id) || !(await store.operatorEndpoints.delete(id, now()))) throw new Refusal('endpoint_not_found')
      return reply.code(204).send(null)
    },
  )
}

export async function viewOf(endpoint: OperatorEndpoint, { store, now }: ApiContext): Promise<OperatorEndpointView> {
  const deliveries = await store.operatorEndpoints.countDeliveries(endpoint.id, now() - WEEK_MS)
  return operatorEndpointView(endpoint, deliveries, now())
}

/** @throws Refusal `endpoint_not_found` */
export async function findOrRefuse({ store }: ApiContext, id: string): Promise<OperatorEndpoint> {
  return found(isId(id) ? await store.operatorEndpoints.find(id) : null)
}

/** @throws Refusal `endpoint_not_found` */
export function found(endpoint: OperatorEndpoint | null): OperatorEndpoint {
  if (endpoint === null) throw new Refusal('endpoint_not_found')
  return endpoint
}
