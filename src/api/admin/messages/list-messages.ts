import { Type } from 'typebox'
import { MESSAGE_STATES } from '../../../domain/message.ts'
import type { Api, ApiContext } from '../../context.ts'
import { findWaits } from '../../find-waits.ts'
import { checkFilterText, parseMoment } from '../../input.ts'
import { messageSchema, messageView } from '../../resources/message.ts'
import { pageOf, pageQuery, pageRequest } from '../../resources/page.ts'
import { oneOf } from '../../resources/schema-kit.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'

const querySchema = Type.Object({
  ...pageQuery,
  state: Type.Optional(oneOf(MESSAGE_STATES, { description: 'Only messages in this state.' })),
  to: Type.Optional(
    Type.String({ maxLength: 64, description: 'Only messages to this recipient, as the caller wrote it.' }),
  ),
  search: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: 'Only messages whose recipient or text contains this, without regard to case and accents.',
    }),
  ),
  since: Type.Optional(Type.String({ description: 'Accepted at or after this time (ISO 8601).' })),
  until: Type.Optional(Type.String({ description: 'Accepted before this time (ISO 8601).' })),
})

export function listMessages(api: Api, { store, now }: ApiContext): void {
  api.get(
    '/instances/:id/messages',
    {
      schema: {
        operationId: 'listMessages',
        summary: 'List messages',
        description: 'Sent messages, newest first.',
        tags: ['Message log'],
        params: instanceParams,
        querystring: querySchema,
        response: { 200: pageOf(messageSchema, 'One page of messages.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { state, to, search, since, until } = request.query
      if (to !== undefined) checkFilterText('to', to)
      if (search !== undefined) checkFilterText('search', search)
      const filter = {
        state,
        to,
        search,
        since: since === undefined ? undefined : parseMoment('since', since),
        until: until === undefined ? undefined : parseMoment('until', until),
      }
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const page = await store.messages.list(id, pageRequest(request.query), filter)
      const waits = await findWaits(store, id, page.data, now())
      return { data: page.data.map(message => messageView(message, waits)), nextCursor: page.nextCursor }
    },
  )
}
