import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { closedSignal } from '../../http/closed-signal.ts'
import { checkChat } from '../../input.ts'
import { erasedSchema, eraseFilesOfChat } from '../../media/erase-files-of-chat.ts'
import { recipientSchema } from '../../resources/message.ts'
import { dataOf } from '../../resources/schema-kit.ts'

export function eraseChatMedia(api: Api, { media, store, closing }: ApiContext): void {
  api.delete(
    '/chats/:chat/media',
    {
      schema: {
        operationId: 'eraseChatMedia',
        summary: 'Erase the files of a chat',
        description:
          'Erases the files of all messages of a chat and the images of its link previews, as `eraseMedia` does for ' +
          'one file. Uploaded files are erased even if they were also sent to other chats. The messages stay, and so ' +
          'do the files of queued messages. If the caller disconnects, the call stops: repeat it to erase the rest.',
        tags: ['Media'],
        params: Type.Object({ chat: recipientSchema }),
        response: { 200: dataOf(erasedSchema, 'Erased.') },
      },
      config: { scope: 'media', refusals: ['invalid_request', 'media_not_configured', 'too_many_transfers'] },
    },
    async (request, reply) => {
      if (media === null) throw new Refusal('media_not_configured')
      const { chat } = request.params
      checkChat('chat', chat)
      const stopped = AbortSignal.any([closing, closedSignal(reply.raw)])
      return { data: await eraseFilesOfChat(store, media, request.instanceId, chat, stopped) }
    },
  )
}
