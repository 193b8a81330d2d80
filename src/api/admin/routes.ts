import type { AllowedMethods } from '../allowed-methods.ts'
import type { Api, ApiContext } from '../context.ts'
import { registerMetrics } from '../metrics.ts'
import { refuseOtherMethods, refuseUnknownPaths } from '../unknown-paths.ts'
import { connectInstance } from './connect-instance.ts'
import { countDeliveries } from './count-deliveries.ts'
import { createInstance } from './create-instance.ts'
import { deleteInstance } from './delete-instance.ts'
import { endSession } from './end-session.ts'
import { listActivity } from './list-activity.ts'
import { listConversations } from './list-conversations.ts'
import { listEvents } from './list-events.ts'
import { listInstances } from './list-instances.ts'
import { listMessages } from './list-messages.ts'
import { listSessions } from './list-sessions.ts'
import { logoutInstance } from './logout-instance.ts'
import { readConnection } from './read-connection.ts'
import { readEvent } from './read-event.ts'
import { readHealth } from './read-health.ts'
import { readInstance } from './read-instance.ts'
import { readInstanceWebhook } from './read-instance-webhook.ts'
import { readMessage } from './read-message.ts'
import { readSandboxPhone } from './read-sandbox-phone.ts'
import { readSession } from './read-session.ts'
import { readStatistics } from './read-statistics.ts'
import { redeliverEvent } from './redeliver-event.ts'
import { redeliverEvents } from './redeliver-events.ts'
import { renameInstance } from './rename-instance.ts'
import { replaceToken } from './replace-token.ts'
import { replaceWebhookSecret } from './replace-webhook-secret.ts'
import { createAdminCheck, createKeyCheck } from './require-admin.ts'
import { sendMessage } from './send-message.ts'
import { setInstanceWebhook } from './set-instance-webhook.ts'
import { setPassword } from './set-password.ts'
import { signIn } from './sign-in.ts'
import { signOut } from './sign-out.ts'
import { streamChanges } from './stream-changes.ts'
import { streamConnection } from './stream-connection.ts'
import { switchSandboxPhone } from './switch-sandbox-phone.ts'
import { testWebhook } from './test-webhook.ts'
import { writeAsContact } from './write-as-contact.ts'
import { WrongKeys } from './wrong-keys.ts'

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
  readHealth,
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
  sendMessage,
  testWebhook,
  listActivity,
  readStatistics,
  countDeliveries,
  listConversations,
  readSandboxPhone,
  switchSandboxPhone,
  streamChanges,
  readSession,
  signOut,
  listSessions,
  endSession,
  setPassword,
] as const

/**
 * The management API (decisions §6): every call by the admin key or a session, unknown addresses included. The metrics
 * are beside it, behind the same check.
 */
export function registerAdmin(api: Api, context: ApiContext, allowed: AllowedMethods): void {
  const isAdminKey = createKeyCheck(context.settings.adminKey)
  const wrongKeys = new WrongKeys(context.store.sessions)
  api.register(async (open: Api) => signIn(open, context, isAdminKey, wrongKeys), { prefix: '/admin/v1' })
  api.register(
    async (admin: Api) => {
      admin.addHook('onRequest', createAdminCheck(context, isAdminKey, wrongKeys))
      refuseUnknownPaths(admin, allowed)
      refuseOtherMethods(admin, allowed, '/instances/:id/events/redeliver', ['GET'])
      for (const register of OPERATIONS) register(admin, context)
    },
    { prefix: '/admin/v1' },
  )
  api.register(async (beside: Api) => {
    beside.addHook('onRequest', createAdminCheck(context, isAdminKey, wrongKeys))
    registerMetrics(beside, context)
  })
}
