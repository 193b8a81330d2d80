import { Type } from 'typebox'
import { parseRecipient } from '../../../domain/recipients/recipient.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { describedGroupSchema, describedGroupView, groupIdSchema } from '../../resources/conversation/directory.ts'
import { dataOf } from '../../resources/schema-kit.ts'

export function getGroup(api: Api, { store }: ApiContext): void {
  api.get(
    '/groups/:id',
    {
      schema: {
        operationId: 'getGroup',
        summary: 'Read a group with its members',
        description: 'Only groups that the linked number is a member of are found.',
        tags: ['Directory'],
        params: Type.Object({ id: groupIdSchema }),
        response: { 200: dataOf(describedGroupSchema, 'The group.') },
      },
      config: { scope: 'read', refusals: ['group_not_found'] },
    },
    async request => {
      const { id } = request.params
      const isGroup = parseRecipient(id)?.kind === 'group'
      const group = isGroup ? await store.directory.findGroup(request.instanceId, id) : null
      if (!group) throw new Refusal('group_not_found')
      return { data: describedGroupView(group) }
    },
  )
}
