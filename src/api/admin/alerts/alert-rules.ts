import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { alertDelaySchema, alertRuleSchema, alertRuleViews } from '../../resources/alert.ts'
import { dataOf } from '../../resources/schema-kit.ts'

const rulesSchema = dataOf(Type.Array(alertDelaySchema), 'Every rule.')

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
    async () => ({ data: alertRuleViews(await store.alerts.findDelays()) }),
  )
}

export function setAlertRule(api: Api, { store }: ApiContext): void {
  api.put(
    '/alerts/rules/:rule',
    {
      schema: {
        operationId: 'setAlertRule',
        summary: 'Set after how many minutes a problem is announced',
        description: 'With null it is never announced, and an alert that is open ends.',
        tags: ['Alerts'],
        params: Type.Object({ rule: alertRuleSchema }),
        body: Type.Pick(alertDelaySchema, ['afterMinutes'], { title: 'AlertDelay' }),
        response: { 200: rulesSchema },
      },
      config: { refusals: ['invalid_request'] },
    },
    async request => {
      await store.alerts.setDelay(request.params.rule, request.body.afterMinutes)
      return { data: alertRuleViews(await store.alerts.findDelays()) }
    },
  )
}
