import type { AllowedMethods } from '../allowed-methods.ts'
import type { Api, ApiContext } from '../context.ts'
import { refuseOtherMethods, refuseUnknownPaths } from '../unknown-paths.ts'
import { connectInstance } from './connect-instance.ts'
import { createInstance } from './create-instance.ts'
import { deleteInstance } from './delete-instance.ts'
import { listEvents } from './list-events.ts'
import { listInstances } from './list-instances.ts'
import { listMessages } from './list-messages.ts'
import { logoutInstance } from './logout-instance.ts'
import { readConnection } from './read-connection.ts'
import { readEvent } from './read-event.ts'
import { readInstance } from './read-instance.ts'
import { readInstanceWebhook } from './read-instance-webhook.ts'
import { readMessage } from './read-message.ts'
import { redeliverEvent } from './redeliver-event.ts'
import { redeliverEvents } from './redeliver-events.ts'
import { renameInstance } from './rename-instance.ts'
import { replaceToken } from './replace-token.ts'
import { replaceWebhookSecret } from './replace-webhook-secret.ts'
import { createAdminCheck } from './require-admin.ts'
import { setInstanceWebhook } from './set-instance-webhook.ts'
import { streamConnection } from './stream-connection.ts'
import { writeAsContact } from './write-as-contact.ts'

const OPERATIONS = [
  createInstance,
  listInstances,
  readInstance,
  renameInstance,
  deleteInstance,
  replaceToken,
  connectInstance,
  logoutInstance,
  readConnection,
  streamConnection,
  readInstanceWebhook,
  setInstanceWebhook,
  replaceWebhookSecret,
  listMessages,
  readMessage,
  listEvents,
  readEvent,
  redeliverEvent,
  redeliverEvents,
  writeAsContact,
] as const

/** The management API (decisions §6): every call by the admin key, unknown addresses included. */
export function registerAdmin(api: Api, context: ApiContext, allowed: AllowedMethods): void {
  api.register(
    async (admin: Api) => {
      admin.addHook('onRequest', createAdminCheck(context.settings.adminKey, context.now))
      refuseUnknownPaths(admin, allowed)
      refuseOtherMethods(admin, allowed, '/instances/:id/events/redeliver', ['GET'])
      for (const register of OPERATIONS) register(admin, context)
    },
    { prefix: '/admin/v1' },
  )
}
