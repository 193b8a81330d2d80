import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { conversationSchema, conversationViews } from '../../resources/conversation/conversation.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { getSandboxOrRefuse, instanceParams } from '../instances/instance-params.ts'

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
        description: 'Contains the latest 200 sent and the latest 200 received messages. Latest conversation first.',
        tags: ['Sandbox'],
        params: instanceParams,
        response: { 200: dataOf(Type.Array(conversationSchema), 'The conversations.') },
      },
      config: { refusals: ['instance_not_found', 'not_a_sandbox'] },
    },
    async request => {
      const { id } = await getSandboxOrRefuse(context.store, request.params.id)
      const [sent, received] = await Promise.all([
        store.messages.list(id, { limit: MAX_LINES }),
        store.events.listReceived(id, MAX_LINES),
      ])
      return { data: conversationViews(sent.data, received) }
    },
  )
}
