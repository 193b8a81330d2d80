import { Type } from 'typebox'
import { MESSAGE_STATES } from '../../../domain/message.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { findWaits } from '../../find-waits.ts'
import { checkFilterText, filterNamed, isId, parseMoment } from '../../input.ts'
import { conversationSchema, conversationViews } from '../../resources/conversation/conversation.ts'
import { hideEndpoint } from '../../resources/events/hide-endpoint.ts'
import { instanceIdSchema } from '../../resources/instance.ts'
import { messageIdSchema, messageSchema, messageView } from '../../resources/message.ts'
import { messageLifeSchema, messageLifeView } from '../../resources/message-life.ts'
import { PAGE_OF_TEXTS, pageOf, pageQuery, pageRequest } from '../../resources/page.ts'
import { dataOf, oneOf } from '../../resources/schema-kit.ts'
import { hiddenFrom } from '../access/authorize.ts'
import { getInstanceOrRefuse, getSandboxOrRefuse, instanceParams } from '../instances/instance-params.ts'

const querySchema = Type.Object({
  ...pageQuery,
  status: Type.Optional(oneOf(MESSAGE_STATES, { description: 'Only messages in this state.' })),
  state: Type.Optional(oneOf(MESSAGE_STATES, { description: 'Deprecated alias of `status`.' })),
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
        description: `Messages from the instance, newest first. ${PAGE_OF_TEXTS}`,
        tags: ['Message log'],
        params: instanceParams,
        querystring: querySchema,
        response: { 200: pageOf(messageSchema, 'One page of messages.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { status, state, to, search, since, until } = request.query
      if (to !== undefined) checkFilterText('to', to)
      if (search !== undefined) checkFilterText('search', search)
      const filter = {
        state: filterNamed(['status', 'state'], [status, state]),
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

export function getInstanceMessage(api: Api, { store, now }: ApiContext): void {
  api.get(
    '/instances/:id/messages/:messageId',
    {
      schema: {
        operationId: 'getInstanceMessage',
        summary: 'Read a message and its events',
        tags: ['Message log'],
        params: Type.Object({ id: instanceIdSchema, messageId: messageIdSchema }),
        response: { 200: dataOf(messageLifeSchema, 'The message with its events.') },
      },
      config: { refusals: ['instance_not_found', 'message_not_found'] },
    },
    async request => {
      const { messageId } = request.params
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const message = isId(messageId) ? await store.messages.find(id, messageId) : null
      if (!message) throw new Refusal('message_not_found')
      const waits = await findWaits(store, id, [message], now())
      const view = messageLifeView(message, await store.messages.listEvents(id, messageId), waits)
      const isHidden = hiddenFrom(request)
      return { data: { ...view, events: view.events.map(event => hideEndpoint(event, isHidden)) } }
    },
  )
}

/** The number of messages in each direction. */
const MAX_LINES = 200

export function listConversations(api: Api, context: ApiContext): void {
  const { store } = context
  api.get(
    '/instances/:id/sandbox/conversations',
    {
      schema: {
        operationId: 'listConversations',
        summary: 'List the conversations of a sandbox instance with its simulated contacts',
        description:
          'Contains the latest 200 sent and the latest 200 received messages, or fewer of either if they exceed 1 MiB. Latest ' +
          'conversation first.',
        tags: ['Sandbox'],
        params: instanceParams,
        response: { 200: pageOf(conversationSchema, 'The conversations.') },
      },
      config: { refusals: ['instance_not_found', 'not_a_sandbox'] },
    },
    async request => {
      const { id } = await getSandboxOrRefuse(context.store, request.params.id)
      const [sent, received] = await Promise.all([
        store.messages.list(id, { limit: MAX_LINES }),
        store.events.listReceived(id, MAX_LINES),
      ])
      return { data: conversationViews(sent.data, received), nextCursor: null }
    },
  )
}
