import { registerCommands } from '../commands/register-commands.ts'
import type { Api, ApiContext } from '../context.ts'
import { registerEndpoints } from '../endpoints/routes.ts'
import type { AllowedMethods } from '../http/allowed-methods.ts'
import { refuseOtherMethods, refuseUnknownPaths } from '../http/unknown-paths.ts'
import { changeAccount, createAccount, inviteAccount, listAccounts, removeAccount } from './accounts/accounts.ts'
import { listAlertRules, setAlertRule } from './alerts/alert-rules.ts'
import { createAlertTarget, deleteAlertTarget, listAlertTargets, testAlertTarget } from './alerts/alert-targets.ts'
import { listAlerts } from './alerts/list-alerts.ts'
import { createKey } from './api-keys/create-key.ts'
import { listKeys } from './api-keys/list-keys.ts'
import { revokeKey } from './api-keys/revoke-key.ts'
import { checkAudit } from './audit/check-audit.ts'
import { listAudit } from './audit/list-audit.ts'
import { recordChanges } from './audit/record-changes.ts'
import { answerPasskey, confirmPasskey } from './connection/answer-passkey.ts'
import { getCalls, setCalls } from './connection/calls.ts'
import { connectInstance } from './connection/connect-instance.ts'
import { getConnection } from './connection/get-connection.ts'
import { getHealth } from './connection/get-health.ts'
import { logoutInstance } from './connection/logout-instance.ts'
import { getProxy, setProxy } from './connection/proxy.ts'
import { streamConnection } from './connection/stream-connection.ts'
import { instanceCommands } from './conversation/instance-commands.ts'
import { listChatEntries } from './conversation/list-chat-entries.ts'
import { listInstanceChats } from './conversation/list-instance-chats.ts'
import { searchMessages } from './conversation/search-messages.ts'
import { eraseContact } from './directory/erase-contact.ts'
import { listInstanceContacts, listInstanceGroups } from './directory/list-instance-directory.ts'
import { countDeliveries } from './events/count-deliveries.ts'
import { getInstanceEvent } from './events/get-instance-event.ts'
import { listEvents } from './events/list-events.ts'
import { redeliverEvent } from './events/redeliver-event.ts'
import { redeliverEvents } from './events/redeliver-events.ts'
import { createInstance } from './instances/create-instance.ts'
import { deleteInstance } from './instances/delete-instance.ts'
import { getAttention } from './instances/get-attention.ts'
import { getInstanceById } from './instances/get-instance-by-id.ts'
import { getStatistics } from './instances/get-statistics.ts'
import { importSession } from './instances/import-session.ts'
import { listActivity } from './instances/list-activity.ts'
import { listInstances } from './instances/list-instances.ts'
import { getPace, setPace } from './instances/pace.ts'
import { renameInstance } from './instances/rename-instance.ts'
import { replaceToken } from './instances/replace-token.ts'
import { search } from './instances/search.ts'
import { createLink, listLinks, revokeLink } from './links/links.ts'
import { downloadInstanceMedia } from './media/download-instance-media.ts'
import { eraseInstanceChatMedia } from './media/erase-instance-chat-media.ts'
import { eraseInstanceMedia } from './media/erase-instance-media.ts'
import { getInstanceMedia } from './media/get-instance-media.ts'
import { getMediaUsage } from './media/get-media-usage.ts'
import { listMedia } from './media/list-media.ts'
import { uploadInstanceMedia } from './media/upload-instance-media.ts'
import { getInstanceMessage } from './messages/get-instance-message.ts'
import { listConversations } from './messages/list-conversations.ts'
import { listMessages } from './messages/list-messages.ts'
import { sendMessage } from './messages/send-message.ts'
import {
  changeOperatorEndpoint,
  createOperatorEndpoint,
  deleteOperatorEndpoint,
  getOperatorEndpoint,
  listOperatorEndpoints,
} from './operator-endpoints/manage-operator-endpoints.ts'
import {
  replaceOperatorEndpointSecret,
  retryOperatorEndpoint,
  testOperatorEndpoint,
} from './operator-endpoints/use-operator-endpoint.ts'
import { getSandboxPhone } from './sandbox/get-sandbox-phone.ts'
import { switchSandboxPhone } from './sandbox/switch-sandbox-phone.ts'
import { writeAsContact } from './sandbox/write-as-contact.ts'
import { acceptInvitation } from './sign-in/accept-invitation.ts'
import { endOtherSessions } from './sign-in/end-other-sessions.ts'
import { endSession } from './sign-in/end-session.ts'
import { FailedSignIns } from './sign-in/failed-sign-ins.ts'
import { getSession } from './sign-in/get-session.ts'
import { listSessions } from './sign-in/list-sessions.ts'
import { finishOidcSignIn } from './sign-in/oidc/finish-oidc-sign-in.ts'
import { getSignInOptions } from './sign-in/oidc/get-sign-in-options.ts'
import { ProviderCalls } from './sign-in/oidc/provider-calls.ts'
import { startOidcSignIn } from './sign-in/oidc/start-oidc-sign-in.ts'
import { changeOwnPassword } from './sign-in/passwords/change-own-password.ts'
import { createAdminCheck, createKeyCheck } from './sign-in/require-admin.ts'
import { setPassword } from './sign-in/set-password.ts'
import { signIn } from './sign-in/sign-in.ts'
import { signOut } from './sign-in/sign-out.ts'
import { WrongKeys } from './sign-in/wrong-keys.ts'
import { streamChanges } from './stream-changes.ts'
import { getInstanceWebhook } from './webhook/get-instance-webhook.ts'
import { instanceEndpoints } from './webhook/instance-endpoints.ts'
import { listEndpointHealth } from './webhook/list-endpoint-health.ts'
import { replaceWebhookSecret } from './webhook/replace-webhook-secret.ts'
import { setInstanceWebhook } from './webhook/set-instance-webhook.ts'
import { testWebhook } from './webhook/test-webhook.ts'

const OPERATIONS = [
  createInstance,
  importSession,
  listInstances,
  getInstanceById,
  renameInstance,
  getPace,
  setPace,
  deleteInstance,
  replaceToken,
  listKeys,
  createKey,
  revokeKey,
  connectInstance,
  answerPasskey,
  confirmPasskey,
  createLink,
  listLinks,
  revokeLink,
  logoutInstance,
  getConnection,
  streamConnection,
  getHealth,
  getCalls,
  setCalls,
  getProxy,
  setProxy,
  getInstanceWebhook,
  setInstanceWebhook,
  replaceWebhookSecret,
  listEndpointHealth,
  listMessages,
  getInstanceMessage,
  listEvents,
  getInstanceEvent,
  redeliverEvent,
  redeliverEvents,
  listInstanceGroups,
  listInstanceContacts,
  eraseContact,
  listMedia,
  getMediaUsage,
  getInstanceMedia,
  downloadInstanceMedia,
  uploadInstanceMedia,
  eraseInstanceMedia,
  eraseInstanceChatMedia,
  writeAsContact,
  sendMessage,
  listInstanceChats,
  listChatEntries,
  searchMessages,
  testWebhook,
  listActivity,
  getAttention,
  getStatistics,
  search,
  countDeliveries,
  listConversations,
  getSandboxPhone,
  switchSandboxPhone,
  streamChanges,
  getSession,
  signOut,
  listSessions,
  endSession,
  endOtherSessions,
  changeOwnPassword,
  listAccounts,
  createAccount,
  changeAccount,
  removeAccount,
  inviteAccount,
  setPassword,
  listOperatorEndpoints,
  createOperatorEndpoint,
  getOperatorEndpoint,
  changeOperatorEndpoint,
  deleteOperatorEndpoint,
  replaceOperatorEndpointSecret,
  testOperatorEndpoint,
  retryOperatorEndpoint,
  listAlerts,
  listAlertRules,
  setAlertRule,
  listAlertTargets,
  createAlertTarget,
  deleteAlertTarget,
  testAlertTarget,
  listAudit,
  checkAudit,
] as const

/**
 * The management API (contract §6). Every call, including calls to unknown addresses, requires the admin key or a session.
 * So does `/metrics`.
 */
export function registerAdmin(api: Api, context: ApiContext, allowed: AllowedMethods): void {
  const isAdminKey = createKeyCheck(context.settings.adminKey)
  const wrongKeys = new WrongKeys(context.store.sessions)
  api.register(
    async (open: Api) => {
      const failures = new FailedSignIns(context.store.audit, context.now)
      const calls = new ProviderCalls()
      signIn(open, context, { isAdminKey, wrongKeys, failures })
      acceptInvitation(open, context, wrongKeys)
      getSignInOptions(open, context)
      startOidcSignIn(open, context, wrongKeys, calls)
      finishOidcSignIn(open, context, { wrongKeys, failures, calls })
    },
    { prefix: '/admin/v1' },
  )
  api.register(
    async (admin: Api) => {
      admin.addHook('onRequest', createAdminCheck(context, isAdminKey, wrongKeys))
      recordChanges(admin, context)
      refuseUnknownPaths(admin, allowed)
      refuseOtherMethods(admin, allowed, '/instances/:id/events/redeliver', ['GET'])
      refuseOtherMethods(admin, allowed, '/instances/:id/messages/search', ['PATCH', 'DELETE'])
      for (const register of OPERATIONS) register(admin, context)
      registerEndpoints(admin, context, instanceEndpoints(context))
      registerCommands(admin, context, instanceCommands(context))
    },
    { prefix: '/admin/v1' },
  )
  api.register(async (metrics: Api) => {
    metrics.addHook('onRequest', createAdminCheck(context, isAdminKey, wrongKeys))
    metrics.get('/metrics', { schema: { hide: true }, config: { quiet: true } }, async (_request, reply) => {
      const { contentType, text } = await context.metrics()
      return reply.type(contentType).send(text)
    })
  })
}
