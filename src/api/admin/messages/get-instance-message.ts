import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { findWaits } from '../../find-waits.ts'
import { isId } from '../../input.ts'
import { hideEndpoint } from '../../resources/events/hide-endpoint.ts'
import { instanceIdSchema } from '../../resources/instance.ts'
import { messageIdSchema } from '../../resources/message.ts'
import { messageLifeSchema, messageLifeView } from '../../resources/message-life.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { hasRole } from '../access/authorize.ts'
import { getInstanceOrRefuse } from '../instances/instance-params.ts'

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
      return {
        data: hasRole(request, 'operator') ? view : { ...view, events: view.events.map(event => hideEndpoint(event)) },
      }
    },
  )
}
