import { type Static, Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { AlertAddress } from '../../../store/alerts/alerts.ts'
import type { Api, ApiContext } from '../../context.ts'
import { invalid } from '../../http/error-handler.ts'
import { checkWebhookUrl, isId, parseName } from '../../input.ts'
import {
  alertTargetParams,
  alertTargetSchema,
  alertTargetView,
  createdAlertTargetSchema,
  newAlertTargetSchema,
} from '../../resources/alert.ts'
import { pageOf } from '../../resources/page.ts'
import { dataOf, nullable } from '../../resources/schema-kit.ts'
import { newWebhookSecret } from '../secrets.ts'

export function createAlertTarget(api: Api, context: ApiContext): void {
  const { store, now } = context
  api.post(
    '/alerts/targets',
    {
      schema: {
        operationId: 'createAlertTarget',
        summary: 'Add an alert target',
        description:
          'It receives later alerts: one message when a problem is announced, and one when the problem has ended.',
        tags: ['Alerts'],
        body: newAlertTargetSchema,
        response: { 201: dataOf(createdAlertTargetSchema, 'The target.') },
      },
      config: { refusals: ['invalid_request', 'too_many_alert_targets'] },
    },
    async (request, reply) => {
      const { channel } = request.body
      const name = parseName('name', request.body.name)
      const address = parseAddress(request.body, context)
      const target = await store.alerts.createTarget({ channel, name, address }, now())
      if (target === null) throw new Refusal('too_many_alert_targets')
      return reply.code(201).send({ data: { target: alertTargetView(target), secret: address.secret ?? null } })
    },
  )
}

/** @throws Refusal unless the body has exactly the fields of its channel */
function parseAddress(body: Static<typeof newAlertTargetSchema>, context: ApiContext): AlertAddress {
  const { channel, url, token, chatId, to } = body
  const wanted = {
    email: ['to'],
    telegram: ['url', 'chatId'],
    ntfy: ['url'],
    webhook: ['url'],
    slack: ['url'],
    discord: ['url'],
  }
  const allowed = channel === 'ntfy' ? ['url', 'token'] : wanted[channel]
  for (const field of ['url', 'token', 'chatId', 'to'] as const) {
    if (body[field] === undefined && wanted[channel].includes(field)) throw invalid(field, `is required for ${channel}`)
    if (body[field] !== undefined && !allowed.includes(field)) throw invalid(field, `is not used by ${channel}`)
  }
  if (url !== undefined) checkWebhookUrl(url, context.checkWebhookUrl)
  if (channel === 'ntfy' && !/[^/]/.test(new URL(url!).pathname)) throw invalid('url', 'must end with the topic')
  if (channel === 'email' && !context.alerts.canMail) throw invalid('channel', 'needs the setting SMTP_URL')
  return {
    ...(url !== undefined && { url }),
    ...(token !== undefined && { token }),
    ...(chatId !== undefined && { chatId }),
    ...(to !== undefined && { to }),
    ...(channel === 'webhook' && { secret: newWebhookSecret() }),
  }
}

export function listAlertTargets(api: Api, { store }: ApiContext): void {
  api.get(
    '/alerts/targets',
    {
      schema: {
        operationId: 'listAlertTargets',
        summary: 'List the alert targets',
        tags: ['Alerts'],
        response: { 200: pageOf(alertTargetSchema, 'Every target, oldest first.') },
      },
    },
    async () => ({ data: (await store.alerts.listTargets()).map(alertTargetView), nextCursor: null }),
  )
}

export function deleteAlertTarget(api: Api, { store }: ApiContext): void {
  api.delete(
    '/alerts/targets/:id',
    {
      schema: {
        operationId: 'deleteAlertTarget',
        summary: 'Remove an alert target',
        tags: ['Alerts'],
        params: alertTargetParams,
        response: { 204: Type.Null({ description: 'Removed. Messages that are still waiting for it are discarded.' }) },
      },
      config: { refusals: ['alert_target_not_found'] },
    },
    async (request, reply) => {
      const { id } = request.params
      if (!isId(id) || !(await store.alerts.deleteTarget(id))) throw new Refusal('alert_target_not_found')
      return reply.code(204).send(null)
    },
  )
}

const testSchema = Type.Object(
  { error: nullable(Type.String({ description: 'Why the message did not arrive; null if it did.' })) },
  { title: 'AlertTest' },
)

export function testAlertTarget(api: Api, { store, alerts }: ApiContext): void {
  api.post(
    '/alerts/targets/:id/test',
    {
      schema: {
        operationId: 'testAlertTarget',
        summary: 'Send a test message to an alert target',
        tags: ['Alerts'],
        params: alertTargetParams,
        response: { 200: dataOf(testSchema, 'The result.') },
      },
      config: { refusals: ['alert_target_not_found'] },
    },
    async request => {
      const { id } = request.params
      const target = isId(id) ? await store.alerts.findTarget(id) : null
      if (target === null) throw new Refusal('alert_target_not_found')
      return { data: { error: await alerts.sendTest(target) } }
    },
  )
}
