import { CHANGES_BY_PROGRAMS, recordChanges } from '../admin/audit/record-changes.ts'
import { registerCommands } from '../commands/register-commands.ts'
import type { Api, ApiContext } from '../context.ts'
import { registerEndpoints } from '../endpoints/routes.ts'
import type { AllowedMethods } from '../http/allowed-methods.ts'
import { refuseOtherMethods, refuseUnknownPaths } from '../http/unknown-paths.ts'
import { createAdmission } from './admit-caller.ts'
import { getCommand, OWN_COMMANDS } from './conversation/commands.ts'
import { showTyping } from './conversation/show-typing.ts'
import { checkNumbers } from './directory/check-numbers.ts'
import { getGroup, listContacts, listGroups } from './directory/directory.ts'
import { getEvent, redeliverOwnEvent } from './events.ts'
import { FeedReaders } from './feed/feed-readers.ts'
import { readFeed } from './feed/read-feed.ts'
import { streamFeed } from './feed/stream-feed.ts'
import { getInstance, OWN_ENDPOINTS } from './instance.ts'
import { eraseChatMedia } from './media/erase-chat-media.ts'
import { eraseMedia } from './media/erase-media.ts'
import { getMedia } from './media/get-media.ts'
import { uploadMedia } from './media/upload-media.ts'
import { getMessage, listChats, listOwnMessages } from './messages/read-messages.ts'
import { sendMedia } from './messages/send-media.ts'
import { sendText } from './messages/send-text.ts'
import { clearWebhook, getWebhook, setWebhook } from './webhook.ts'

/** The public API. Every call requires an instance's token or one of its API keys, also at unknown addresses. */
export function registerV1(api: Api, context: ApiContext, allowed: AllowedMethods): void {
  api.register(
    async (v1: Api) => {
      v1.addHook('onRequest', createAdmission(context.store.admission))
      v1.addHook('preHandler', async () => context.store.clock.settled?.())
      recordChanges(v1, context, CHANGES_BY_PROGRAMS)
      refuseUnknownPaths(v1, allowed)
      for (const type of ['text', 'media'])
        refuseOtherMethods(v1, allowed, `/messages/${type}`, ['GET', 'PATCH', 'DELETE'])
      refuseOtherMethods(v1, allowed, '/events/stream', ['HEAD'])
      sendText(v1, context)
      sendMedia(v1, context)
      getMessage(v1, context)
      listOwnMessages(v1, context)
      listChats(v1, context)
      registerCommands(v1, context, OWN_COMMANDS)
      getCommand(v1, context)
      listGroups(v1, context)
      getGroup(v1, context)
      listContacts(v1, context)
      checkNumbers(v1, context)
      showTyping(v1, context)
      getInstance(v1, context)
      getWebhook(v1, context)
      setWebhook(v1, context)
      clearWebhook(v1, context)
      getEvent(v1, context)
      redeliverOwnEvent(v1, context)
      registerEndpoints(v1, context, OWN_ENDPOINTS)
      uploadMedia(v1, context)
      getMedia(v1, context)
      eraseMedia(v1, context)
      eraseChatMedia(v1, context)
      const readers = new FeedReaders()
      readFeed(v1, context, readers)
      streamFeed(v1, context, readers)
    },
    { prefix: '/v1' },
  )
}
