import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { invalid } from '../../http/error-handler.ts'
import { isId } from '../../input.ts'
import { activitySchema, activityView } from '../../resources/activity.ts'
import { pageOf } from '../../resources/page.ts'
import { mayReach } from '../access/authorize.ts'

const HOUR_MS = 60 * 60_000
const WEEK_MS = 7 * 24 * HOUR_MS
const MAX_IDS = 100
const MAX_IDS_LENGTH = 4_096

export function listActivity(api: Api, { store, now }: ApiContext): void {
  api.get(
    '/activity',
    {
      schema: {
        operationId: 'listActivity',
        summary: 'Read the recent activity of instances',
        tags: ['Statistics'],
        querystring: Type.Object({
          ids: Type.String({
            minLength: 1,
            maxLength: MAX_IDS_LENGTH,
            description: 'Up to 100 instances, separated by commas.',
          }),
        }),
        response: {
          200: pageOf(
            activitySchema,
            'In no particular order. Unknown instances count as idle, and those that the account does not reach are left out.',
          ),
        },
      },
      config: { refusals: ['invalid_request'] },
    },
    async request => {
      const ids = [...new Set(request.query.ids.split(','))]
      if (ids.length > MAX_IDS || !ids.every(isId)) throw invalid('ids', 'must be up to 100 instances')
      const reached = ids.filter(id => mayReach(request, id))
      const activity = await store.statistics.activity(reached, now() - HOUR_MS, now() - WEEK_MS)
      return { data: activity.map(activityView), nextCursor: null }
    },
  )
}
