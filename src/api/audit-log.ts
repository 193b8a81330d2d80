import type { FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { callerAddress } from './admin/sign-in/caller-address.ts'
import type { Api } from './context.ts'

/** Each operation exists for an instance's own endpoints, for those of any instance, and for operator endpoints. */
const ENDPOINT_CHANGES = [
  ['create', ''],
  ['change', ''],
  ['delete', ''],
  ['retry', ''],
  ['replace', 'Secret'],
] as const

/** Operations that delete, unlink, redeliver, retry, import, export, or change access or webhooks. */
const AUDITED: ReadonlySet<string> = new Set([
  'importSession',
  'deleteInstance',
  'logoutInstance',
  'replaceToken',
  'createKey',
  'revokeKey',
  'createLink',
  'revokeLink',
  'startLink',
  'replaceWebhookSecret',
  'setInstanceWebhook',
  'setWebhook',
  'clearWebhook',
  ...ENDPOINT_CHANGES.flatMap(([verb, rest]) => ['', 'Instance', 'Operator'].map(of => `${verb}${of}Endpoint${rest}`)),
  'eraseMedia',
  'eraseInstanceMedia',
  'eraseChatMedia',
  'eraseInstanceChatMedia',
  'eraseContact',
  'exportContact',
  'redeliverEvent',
  'redeliverEvents',
  'redeliverOwnEvent',
  'retryDelivery',
  'retryInstanceDelivery',
  'setPassword',
  'signIn',
  'finishOidcSignIn',
  'signOut',
  'endSession',
  'endOtherSessions',
  'changeOwnPassword',
  'createAccount',
  'changeAccount',
  'removeAccount',
  'inviteAccount',
  'acceptInvitation',
])
/** The characters of a session ID that are logged: enough to find it in the list. */
const SHOWN_OF_SESSION = 8
/** How many of a digest's 64 hexadecimal digits are logged: 128 bits, which never match by chance. */
const SHOWN_OF_DIGEST = 32

/** Logs one line for each successful call of an audited operation: caller, operation, instance and address. */
export function auditOperations(api: Api, logger: Logger): void {
  api.addHook('onRoute', route => {
    const action = (route.schema as { operationId?: string } | undefined)?.operationId ?? ''
    if (!AUDITED.has(action)) return
    route.onResponse = (request, reply, done) => {
      if (reply.statusCode < 400) logger.info(factsOf(request, action), 'audit')
      done()
    }
  })
}

function factsOf(request: FastifyRequest, action: string) {
  const { id, eventId, keyId, endpointId, deliveryId, mediaId } = request.params as Record<string, string | undefined>
  const isOfSession = action === 'endSession'
  const isOfOperator = action.includes('OperatorEndpoint')
  const isOfMedia = action === 'eraseMedia'
  return {
    requestId: request.id,
    action,
    by: callerOf(request, action),
    instanceId:
      request.instanceId ||
      (isOfSession || isOfOperator ? undefined : (id ?? request.audit?.entry.instanceId ?? undefined)),
    eventId,
    keyId,
    endpointId: isOfOperator ? id : endpointId,
    deliveryId,
    mediaId: isOfMedia ? id : mediaId,
    endedSession: isOfSession ? id?.slice(0, SHOWN_OF_SESSION) : undefined,
    address: callerAddress(request),
    // The log, if it is kept elsewhere, proves what the audit in the database contained.
    auditSeq: request.audit?.recorded?.seq,
    auditDigest: request.audit?.recorded?.digest.slice(0, SHOWN_OF_DIGEST),
  }
}

function callerOf({ account, apiKey, instanceId, sessionId, audit }: FastifyRequest, action: string): string {
  if (account !== null) return `account ${account.id}`
  if (apiKey !== null) return `key ${apiKey.id}`
  if (instanceId !== '') return 'token'
  if (sessionId !== '') return `session ${sessionId.slice(0, SHOWN_OF_SESSION)}`
  if (action === 'signIn' || action === 'finishOidcSignIn') return 'sign-in'
  if (action === 'startLink') return `link ${audit?.entry.actor}`
  if (action === 'acceptInvitation') return `account ${audit?.entry.actor}`
  return 'admin key'
}
