import { registerCommands } from '../commands/register-commands.ts'
import type { Api, ApiContext } from '../context.ts'
import { registerEndpoints } from '../endpoints/routes.ts'
import type { AllowedMethods } from '../http/allowed-methods.ts'
import { refuseOtherMethods, refuseUnknownPaths } from '../http/unknown-paths.ts'
import { changeAccount, createAccount, inviteAccount, listAccounts, removeAccount } from './accounts/accounts.ts'
import { createAlertTarget, deleteAlertTarget, listAlertTargets, testAlertTarget } from './alerts/alert-targets.ts'
import { listAlertRules, listAlerts, setAlertRule } from './alerts/alerts.ts'
import { createKey, listKeys, revokeKey } from './api-keys/api-keys.ts'
import { checkAudit, listAudit } from './audit/audit.ts'
import { recordChanges } from './audit/record-changes.ts'
import { answerPasskey, confirmPasskey } from './connection/answer-passkey.ts'
import { getCalls, setCalls } from './connection/calls.ts'
import { connectInstance } from './connection/connect-instance.ts'
import { getConnection } from './connection/get-connection.ts'
import { getHealth } from './connection/get-health.ts'
import { logoutInstance } from './connection/logout-instance.ts'
import { getProxy, setProxy } from './connection/proxy.ts'
import { streamConnection } from './connection/stream-connection.ts'
import { listChatEntries, listInstanceChats, searchMessages } from './conversation/conversation.ts'
import { instanceCommands } from './conversation/instance-commands.ts'
import { eraseContact } from './directory/erase-contact.ts'
import { exportContact } from './directory/export-contact.ts'
import { listInstanceContacts, listInstanceGroups } from './directory/list-instance-directory.ts'
import { countDeliveries, getInstanceEvent, listEvents, redeliverEvent, redeliverEvents } from './events/events.ts'
import { getAttention } from './instances/get-attention.ts'
import { getStatistics } from './instances/get-statistics.ts'
import { importSession } from './instances/import-session.ts'
import { createInstance, deleteInstance, getInstanceById, renameInstance, replaceToken } from './instances/instances.ts'
import { listActivity } from './instances/list-activity.ts'
import { listInstances } from './instances/list-instances.ts'
import { getPace, setPace } from './instances/pace.ts'
import { search } from './instances/search.ts'
import { createLink, listLinks, revokeLink } from './links/links.ts'
import { downloadInstanceMedia } from './media/download-instance-media.ts'
import { eraseInstanceChatMedia } from './media/erase-instance-chat-media.ts'
import { eraseInstanceMedia } from './media/erase-instance-media.ts'
import { getInstanceMedia } from './media/get-instance-media.ts'
import { getMediaUsage } from './media/get-media-usage.ts'
import { listMedia } from './media/list-media.ts'
import { uploadInstanceMedia } from './media/upload-instance-media.ts'
import { getInstanceMessage, listConversations, listMessages } from './messages/messages.ts'
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
import { getSandboxPhone, switchSandboxPhone, writeAsContact } from './sandbox/sandbox.ts'
import { acceptInvitation } from './sign-in/accept-invitation.ts'
import { FailedSignIns } from './sign-in/failed-sign-ins.ts'
import { getSession } from './sign-in/get-session.ts'
import { finishOidcSignIn } from './sign-in/oidc/finish-oidc-sign-in.ts'
import { getSignInOptions } from './sign-in/oidc/get-sign-in-options.ts'
import { ProviderCalls } from './sign-in/oidc/provider-calls.ts'
import { startOidcSignIn } from './sign-in/oidc/start-oidc-sign-in.ts'
import { changeOwnPassword } from './sign-in/passwords/change-own-password.ts'
import { createAdminCheck, createKeyCheck } from './sign-in/require-admin.ts'
import { endOtherSessions, endSession, listSessions } from './sign-in/sessions.ts'
import { setPassword } from './sign-in/set-password.ts'
import { signIn } from './sign-in/sign-in.ts'
import { signOut } from './sign-in/sign-out.ts'
import { WrongKeys } from './sign-in/wrong-keys.ts'
import { streamChanges } from './stream-changes.ts'
import { instanceEndpoints } from './webhook/instance-endpoints.ts'
import {
  getInstanceWebhook,
  listEndpointHealth,
  replaceWebhookSecret,
  setInstanceWebhook,
  testWebhook,
} from './webhook/webhook.ts'

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
  exportContact,
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
 * The management API (contract §6). Every call requires the admin key or a session, even a call to an
 * unknown address. Only signing in and accepting an invitation do not.
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
      admin.addHook('preHandler', async () => context.store.clock.settled?.())
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
    metrics.get(
      '/metrics',
      { schema: { hide: true }, config: { quiet: true, alwaysServed: true } },
      async (_request, reply) => {
        const { contentType, text } = await context.metrics()
        return reply.type(contentType).send(text)
      },
    )
  })
}
