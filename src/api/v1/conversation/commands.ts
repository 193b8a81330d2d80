import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { CommandScope } from '../../commands/scope.ts'
import type { Api, ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { commandIdSchema, commandSchema, commandView } from '../../resources/conversation/command.ts'
import { messageIdSchema } from '../../resources/message.ts'
import { dataOf } from '../../resources/schema-kit.ts'

/** Commands on the messages of the token's instance. */
export const OWN_COMMANDS: CommandScope = {
  path: '/messages/:id',
  params: { id: messageIdSchema },
  names: {
    react: 'react',
    removeReaction: 'removeReaction',
    editMessage: 'editMessage',
    deleteMessage: 'deleteMessage',
    markRead: 'markRead',
  },
  tags: ['Messages'],
  outcome: 'The result is reported as `command.done` or `command.failed`, and by `getCommand`.',
  config: { scope: 'send' },
  refusals: [],
  targetOf: async ({ instanceId, params }) => ({ instanceId, messageId: (params as { id: string }).id }),
}

export function getCommand(api: Api, { store }: ApiContext): void {
  api.get(
    '/commands/:id',
    {
      schema: {
        operationId: 'getCommand',
        summary: 'Read a command',
        description: 'Returns a reaction, edit, deletion or read mark with its state.',
        tags: ['Messages'],
        params: Type.Object({ id: commandIdSchema }),
        response: { 200: dataOf(commandSchema, 'The command.') },
      },
      config: { scope: 'read', refusals: ['command_not_found'] },
    },
    async request => {
      const { id } = request.params
      const command = isId(id) ? await store.messages.findCommand(request.instanceId, id) : null
      if (command === null) throw new Refusal('command_not_found')
      return { data: commandView(command) }
    },
  )
}
