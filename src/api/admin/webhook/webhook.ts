import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { DEFAULT_ENDPOINT, type Webhook } from '../../../domain/events/endpoint.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { postTest } from '../../endpoints/post-test.ts'
import { checkWebhookUrl, isId } from '../../input.ts'
import { type AdminWebhookView, adminWebhookSchema, adminWebhookView } from '../../resources/events/admin-webhook.ts'
import { endpointHealthSchema, endpointHealthView } from '../../resources/events/endpoint-health.ts'
import { hideUrl } from '../../resources/events/hide-endpoint.ts'
import { urlSchema } from '../../resources/events/webhook.ts'
import { webhookTestSchema } from '../../resources/events/webhook-test.ts'
import { pageOf } from '../../resources/page.ts'
import { dataOf, nullable } from '../../resources/schema-kit.ts'
import { hasRole } from '../access/authorize.ts'
import { getInstanceOrRefuse, instanceParams, orNotFound } from '../instances/instance-params.ts'
import { newWebhookSecret } from '../secrets.ts'

export function getInstanceWebhook(api: Api, context: ApiContext): void {
  const { store } = context
  api.get(
    '/instances/:id/webhook',
    {
      schema: {
        operationId: 'getInstanceWebhook',
        summary: 'Read the webhook of an instance',
        tags: ['Webhooks'],
        params: instanceParams,
        response: { 200: dataOf(adminWebhookSchema, 'The current configuration.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = request.params
      return {
        data: await showWebhook(context, request, orNotFound(isId(id) ? await store.instances.findWebhook(id) : null)),
      }
    },
  )
}

export function setInstanceWebhook(api: Api, context: ApiContext): void {
  const { store } = context
  api.put(
    '/instances/:id/webhook',
    {
      schema: {
        operationId: 'setInstanceWebhook',
        summary: 'Set or clear the webhook of an instance',
        description: 'The URL applies to later events. With null, later events are not posted to the default endpoint.',
        tags: ['Webhooks'],
        params: instanceParams,
        body: Type.Object({ url: nullable(urlSchema) }, { title: 'WebhookUrlOrNull' }),
        response: { 200: dataOf(adminWebhookSchema, 'The updated configuration.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { id } = request.params
      const { url } = request.body
      if (url !== null) checkWebhookUrl(url, context.checkWebhookUrl)
      const changed = orNotFound(isId(id) ? await store.instances.setWebhookUrl(id, url) : null)
      return { data: await showWebhook(context, request, changed) }
    },
  )
}

export function replaceWebhookSecret(api: Api, context: ApiContext): void {
  const { store, now } = context
  api.post(
    '/instances/:id/webhook/secret',
    {
      schema: {
        operationId: 'replaceWebhookSecret',
        summary: 'Create a new signing secret',
        description:
          'The new secret signs every POST from now on, including those of queued deliveries. For 24 h, ' +
          '`webhook-signature` has a second signature with the old secret. `X-Service-Signature` has only the new one.',
        tags: ['Webhooks'],
        params: instanceParams,
        response: { 200: dataOf(adminWebhookSchema, 'The configuration with the new secret.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = request.params
      if (isId(id)) await store.endpoints.replaceSecret(id, DEFAULT_ENDPOINT, newWebhookSecret(), now())
      return {
        data: await showWebhook(context, request, orNotFound(isId(id) ? await store.instances.findWebhook(id) : null)),
      }
    },
  )
}

export function testWebhook(api: Api, context: ApiContext): void {
  const { store } = context
  api.post(
    '/instances/:id/webhook/test',
    {
      schema: {
        operationId: 'testWebhook',
        summary: 'Post a test event to the webhook and show the answer',
        description: 'Posts one signed event of the kind `webhook.test` at once. It is not logged and not retried.',
        tags: ['Webhooks'],
        params: instanceParams,
        response: { 200: dataOf(webhookTestSchema, 'The result.') },
      },
      config: { refusals: ['instance_not_found', 'webhook_not_configured'] },
    },
    async request => {
      const { id } = request.params
      const { url } = orNotFound(isId(id) ? await store.instances.findWebhook(id) : null)
      if (url === null) throw new Refusal('webhook_not_configured')
      return { data: orNotFound(await postTest(context, { instanceId: id, id: DEFAULT_ENDPOINT, url })) }
    },
  )
}

const WEEK_MS = 7 * 24 * 60 * 60_000

export function listEndpointHealth(api: Api, { store, now }: ApiContext): void {
  api.get(
    '/instances/:id/endpoint-health',
    {
      schema: {
        operationId: 'listEndpointHealth',
        summary: 'List the endpoints of an instance with the state of their deliveries',
        description: 'Without secrets, so that every role may read it. For viewers, `url` is shortened to its origin.',
        tags: ['Webhooks'],
        params: instanceParams,
        response: { 200: pageOf(endpointHealthSchema, 'The default endpoint first, then by age.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const endpoints = await store.endpoints.list(id)
      const ids = endpoints.map(endpoint => endpoint.id)
      const found = await store.statistics.endpoints(id, ids, now() - WEEK_MS)
      const views = endpoints.map((endpoint, index) => endpointHealthView(endpoint, found[index]!, now()))
      return { data: views.map(view => ({ ...view, url: shownUrl(request, view.url) })), nextCursor: null }
    },
  )
}

/** Only owners get the secret. For viewers the URL is shortened to its origin. */
async function showWebhook(
  { store, now }: ApiContext,
  request: FastifyRequest,
  webhook: Webhook,
): Promise<AdminWebhookView> {
  const changedAt = await store.endpoints.findSecretChangedAt(webhook.instanceId, DEFAULT_ENDPOINT)
  const view = adminWebhookView(webhook, changedAt, now())
  if (hasRole(request, 'owner')) return view
  return { ...view, url: view.url && shownUrl(request, view.url), secret: null }
}

function shownUrl(request: FastifyRequest, url: string): string {
  return hasRole(request, 'operator') ? url : hideUrl(url)
}
