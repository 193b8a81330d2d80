import type { CommandScope } from '../../commands/scope.ts'
import type { ApiContext } from '../../context.ts'
import { instanceIdSchema } from '../../resources/instance.ts'
import { messageIdSchema } from '../../resources/message.ts'
import { getInstanceOrRefuse } from '../instances/instance-params.ts'

/** Commands on the messages of any instance. */
export function instanceCommands({ store }: ApiContext): CommandScope {
  return {
    path: '/instances/:id/messages/:messageId',
    params: { id: instanceIdSchema, messageId: messageIdSchema },
    names: {
      react: 'reactByHand',
      removeReaction: 'removeReactionByHand',
      editMessage: 'editByHand',
      deleteMessage: 'deleteByHand',
      markRead: 'markReadByHand',
    },
    tags: ['Conversations'],
    outcome: 'The result is in `listChatEntries`.',
    config: {},
    refusals: ['instance_not_found'],
    async targetOf({ params }) {
      const { id, messageId } = params as { id: string; messageId: string }
      return { instanceId: (await getInstanceOrRefuse(store, id)).id, messageId }
    },
  }
}
