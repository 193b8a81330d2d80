import type { FastifyRequest } from 'fastify'
import type { InstanceId } from '../../../domain/ids.ts'
import type { AuditEntry } from '../../../store/audit/audit.ts'
import type { Api, ApiContext } from '../../context.ts'
import { callerAddress } from '../sign-in/caller-address.ts'

/** The characters of a session ID that are recorded: enough to find it in the list. */
export const SHOWN_OF_SESSION = 8
const MAX_DETAIL_LENGTH = 100
/** The last digits of a number that are recorded. */
const SHOWN_DIGITS = 4
const OF_AN_INSTANCE = '/admin/v1/instances/:id'
const OF_A_SESSION = '/admin/v1/sessions/:id'

/**
 * The calls under `/v1` that are recorded: those that change where events go, or their secret. Sends and redeliveries are in the logs of
 * messages and events instead, and erased files only in the log lines (`audit-log.ts`).
 */
export const CHANGES_BY_PROGRAMS: ReadonlySet<string> = new Set([
  'setWebhook',
  'clearWebhook',
  'createEndpoint',
  'changeEndpoint',
  'deleteEndpoint',
  'replaceEndpointSecret',
])

/** The reads that are recorded: they return the stored data of a person. */
const RECORDED_READS: ReadonlySet<string> = new Set(['exportContact'])

/**
 * Records every call of this scope that changes something, and `RECORDED_READS`: in the commit of its change, or, if the change is not a write,
 * before the answer. Refused calls are not recorded.
 * @param only `operationId`s. Default: all of them
 */
export function recordChanges(scope: Api, { store }: ApiContext, only?: ReadonlySet<string>): void {
  scope.addHook('onRoute', route => {
    const action = (route.schema as { operationId?: string } | undefined)?.operationId
    if (action === undefined) return
    if ((route.method === 'GET' || route.method === 'HEAD') && !RECORDED_READS.has(action)) return
    if (only?.has(action) === false) return
    const { handler } = route
    route.handler = function (request, reply) {
      return store.audit.during(entryOf(request, action), pending => {
        request.audit = pending
        return handler.call(this, request, reply)
      })
    }
    route.onSend = async (request, reply, payload) => {
      if (request.audit !== null) await store.audit.finish(request.audit, reply.statusCode < 400)
      return payload
    }
  })
}

/** Adds IDs and names to the entry of this call, which a following write records. Never a text or a secret. */
export function noteForAudit(request: FastifyRequest, details: AuditEntry['details'], instanceId?: InstanceId): void {
  if (request.audit === null) return
  const entry = request.audit.entry as { -readonly [K in keyof AuditEntry]: AuditEntry[K] }
  entry.details = { ...entry.details, ...details }
  if (instanceId !== undefined) entry.instanceId = instanceId
}

/** Stands for a person or group in the audit. Records are kept forever, so they do not contain the full address. */
export function lastDigits(name: string): string {
  return `…${name.replace(/@.*/, '').slice(-SHOWN_DIGITS)}`
}

function entryOf(request: FastifyRequest, action: string): AuditEntry {
  const { sessionId } = request
  // The record has a field of its own for the instance.
  const { id, instanceId: _, ...others } = request.params as Record<string, string>
  const url = request.routeOptions.url ?? ''
  const isOfInstance = url.startsWith(OF_AN_INSTANCE)
  const ids = Object.entries({ ...others, ...(!isOfInstance && id !== undefined && { id }) })
  const shown = url === OF_A_SESSION ? SHOWN_OF_SESSION : MAX_DETAIL_LENGTH
  return {
    ...actorOf(request),
    action,
    instanceId: request.instanceId || (isOfInstance ? (id ?? null) : null),
    address: callerAddress(request),
    details: {
      ...(sessionId !== '' && { session: sessionId.slice(0, SHOWN_OF_SESSION) }),
      ...Object.fromEntries(ids.map(([name, value]) => [name, value.slice(0, shown)])),
    },
  }
}

function actorOf({ account, apiKey, instanceId, sessionId }: FastifyRequest): Pick<AuditEntry, 'actor' | 'actorName'> {
  const named = account ?? apiKey
  if (named !== null) return { actor: named.id, actorName: named.name }
  if (instanceId !== '') return { actor: 'token', actorName: null }
  return { actor: sessionId === '' ? 'admin_key' : 'panel', actorName: null }
}
