import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { alertSchema, alertView } from '../../resources/alert.ts'
import { pageOf, pageQuery, pageRequest } from '../../resources/page.ts'

export function listAlerts(api: Api, { store }: ApiContext): void {
  api.get(
    '/alerts',
    {
      schema: {
        operationId: 'listAlerts',
        summary: 'List the alerts',
        description: 'Alerts that were announced, newest first. They are kept for 90 days after their end.',
        tags: ['Alerts'],
        querystring: Type.Object(pageQuery),
        response: { 200: pageOf(alertSchema, 'A page of alerts.') },
      },
      config: { refusals: ['invalid_request'] },
    },
    async request => {
      const { data, nextCursor } = await store.alerts.list(pageRequest(request.query))
      return { data: data.map(alertView), nextCursor }
    },
  )
}
