import { Type } from 'typebox'
import { CONNECTION_STATES } from '../../../domain/connection/connection.ts'
import { INSTANCE_ORDERS } from '../../../store/instances/instances.ts'
import type { Api, ApiContext } from '../../context.ts'
import { checkFilterText } from '../../input.ts'
import { instanceSchema, instanceView } from '../../resources/instance.ts'
import { pageOf, pageQuery, pageRequest } from '../../resources/page.ts'
import { oneOf } from '../../resources/schema-kit.ts'

const MAX_SEARCH_LENGTH = 100
const HOUR_MS = 60 * 60_000
/** Traffic is counted this often, so the pages of a list are in one order, and repeated reads cost little. */
const COUNTED_EVERY_MS = 10_000

const querySchema = Type.Object({
  ...pageQuery,
  search: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_SEARCH_LENGTH,
      description: 'Part of a name, ID or number, without regard to case and accents.',
    }),
  ),
  state: Type.Optional(oneOf(CONNECTION_STATES, { description: 'Only instances in this state.' })),
  sort: Type.Optional(
    oneOf(INSTANCE_ORDERS, {
      description:
        'The order. Default: `newest` first. `traffic`: by the messages of the last hour, busiest first, counted every 10 s.',
    }),
  ),
})

export function listInstances(api: Api, { store, now }: ApiContext): void {
  api.get(
    '/instances',
    {
      schema: {
        operationId: 'listInstances',
        summary: 'List instances',
        tags: ['Instances'],
        querystring: querySchema,
        response: { 200: pageOf(instanceSchema, 'One page of instances.') },
      },
      config: { refusals: ['invalid_request'] },
    },
    async request => {
      const { search, state, sort } = request.query
      if (search !== undefined) checkFilterText('search', search)
      const ids = request.account?.instances ?? null
      const page = await store.instances.list(pageRequest(request.query), {
        search,
        state,
        sort,
        ids,
        trafficSince: Math.floor(now() / COUNTED_EVERY_MS) * COUNTED_EVERY_MS - HOUR_MS,
      })
      return { data: page.data.map(instanceView), nextCursor: page.nextCursor }
    },
  )
}
