import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { closedSignal } from '../../http/closed-signal.ts'
import { checkChat } from '../../input.ts'
import { erasedSchema, eraseFilesOfChat } from '../../media/erase-files-of-chat.ts'
import { instanceIdSchema } from '../../resources/instance.ts'
import { recipientSchema } from '../../resources/message.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { lastDigits, noteForAudit } from '../audit/record-changes.ts'
import { getStorageOrRefuse } from './media-params.ts'

export function eraseInstanceChatMedia(api: Api, context: ApiContext): void {
  api.delete(
    '/instances/:id/chats/:chat/media',
    {
      schema: {
        operationId: 'eraseInstanceChatMedia',
        summary: 'Erase the files of one chat of an instance',
        description: 'Like `eraseChatMedia`.',
        tags: ['Conversations'],
        params: Type.Object({ id: instanceIdSchema, chat: recipientSchema }),
        response: { 200: dataOf(erasedSchema, 'Erased.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request', 'media_not_configured', 'too_many_transfers'] },
    },
    async (request, reply) => {
      const { media, instance } = await getStorageOrRefuse(context, { id: request.params.id })
      const { chat } = request.params
      checkChat('chat', chat)
      noteForAudit(request, { chat: lastDigits(chat) })
      const stopped = AbortSignal.any([context.closing, closedSignal(reply.raw)])
      return { data: await eraseFilesOfChat(context.store, media, instance.id, chat, stopped) }
    },
  )
}
