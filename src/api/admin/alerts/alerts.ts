import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { alertDelaySchema, alertRuleSchema, alertRuleViews, alertSchema, alertView } from '../../resources/alert.ts'
import { pageOf, pageQuery, pageRequest } from '../../resources/page.ts'
import { oneOf } from '../../resources/schema-kit.ts'

export function listAlerts(api: Api, { store }: ApiContext): void {
  api.get(
    '/alerts',
    {
      schema: {
        operationId: 'listAlerts',
        summary: 'List the alerts',
        description: 'Alerts that were announced, newest first. They are kept for 90 days after their end.',
        tags: ['Alerts'],
        querystring: Type.Object({
          ...pageQuery,
          open: Type.Optional(
            oneOf(['true', 'false'], {
              description: 'Only alerts that have not ended (`true`), or only those that have. Default: both.',
            }),
          ),
        }),
        response: { 200: pageOf(alertSchema, 'A page of alerts.') },
      },
      config: { refusals: ['invalid_request'] },
    },
    async request => {
      const { open } = request.query
      const isOpen = open === undefined ? undefined : open === 'true'
      const { data, nextCursor } = await store.alerts.list(pageRequest(request.query), isOpen)
      return { data: data.map(alertView), nextCursor }
    },
  )
}

const rulesSchema = pageOf(alertDelaySchema, 'Every rule.')

export function listAlertRules(api: Api, { store }: ApiContext): void {
  api.get(
    '/alerts/rules',
    {
      schema: {
        operationId: 'listAlertRules',
        summary: 'List the rules of the alerts',
        tags: ['Alerts'],
        response: { 200: rulesSchema },
      },
    },
    async () => ({ data: alertRuleViews(await store.alerts.findDelays()), nextCursor: null }),
  )
}

export function setAlertRule(api: Api, { store }: ApiContext): void {
  api.put(
    '/alerts/rules/:rule',
    {
      schema: {
        operationId: 'setAlertRule',
        summary: 'Set after how many minutes a problem is announced',
        description: 'With null, the problem is never announced, and open alerts of this rule end without a message.',
        tags: ['Alerts'],
        params: Type.Object({ rule: alertRuleSchema }),
        body: Type.Pick(alertDelaySchema, ['afterMinutes'], { title: 'AlertDelay' }),
        response: { 200: rulesSchema },
      },
      config: { refusals: ['invalid_request'] },
    },
    async request => {
      await store.alerts.setDelay(request.params.rule, request.body.afterMinutes)
      return { data: alertRuleViews(await store.alerts.findDelays()), nextCursor: null }
    },
  )
}
