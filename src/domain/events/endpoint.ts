import type { EndpointId, InstanceId } from '../ids.ts'
import { EVENT_KINDS, type EventKind, INSTANCE_EVENT_KINDS } from './event.ts'

/** The endpoint that `/v1/webhooks/{instanceId}` reads and sets. It exists while it has a URL. */
export const DEFAULT_ENDPOINT: EndpointId = 'endpoint_default'

/** The maximum number of operator endpoints, which receive the connection events of all instances. */
export const MAX_OPERATOR_ENDPOINTS = 10
export const OPERATOR_EVENTS = 'instance.*'
/** The events that operator endpoints may receive. */
export const OPERATOR_EVENT_KINDS: ReadonlySet<EventKind> = new Set(INSTANCE_EVENT_KINDS)

/** The prefix of the IDs of operator endpoints. They sort after the IDs of the instances' own endpoints. */
export const OPERATOR_PREFIX = 'operator_'

export function isOperatorEndpoint(id: EndpointId): boolean {
  return id.startsWith(OPERATOR_PREFIX)
}

/**
 * Which deliveries a caller can see, retry and redeliver. `own`: those to the instance's own endpoints, for its token and keys.
 * `all`: including those to operator endpoints.
 */
export type Reach = 'own' | 'all'

/** Endpoints of one instance. The limit never prevents setting the URL of the default endpoint. */
export const MAX_ENDPOINTS = 10
export const MAX_PATTERNS = 50
export const MAX_DESCRIPTION_UNITS = 500

/** The kinds that the default endpoint receives unless its filter is changed. */
export const DEFAULT_EVENTS: readonly string[] = [
  'message.received',
  'message.sent',
  'message.delivered',
  'message.read',
  'message.failed',
] satisfies EventKind[]

export const ALL_EVENTS = '*'

/** Names under `.invalid` exist nowhere (RFC 2606), so an older node that does not know the receiver posts to nobody. */
const TEST_RECEIVER_HOST = 'test-receiver.pombal.invalid'

/** A built-in receiver: it checks the signature and answers 200, or 401 if the signature is wrong. */
export const TEST_RECEIVER_URL = `https://${TEST_RECEIVER_HOST}/`

export function isTestReceiver(url: string): boolean {
  return url.includes(TEST_RECEIVER_HOST) && URL.parse(url)?.hostname === TEST_RECEIVER_HOST
}

/** A URL that receives the events of an instance, with a secret, an order and a log of its own. All follow one retry schedule. */
export interface Endpoint {
  instanceId: InstanceId
  id: EndpointId
  url: string
  secret: string
  /** Until when the latest of the previous secrets also signs; null if there is none. */
  previousSecretUntil: number | null
  /** Kinds, groups (`message.*`) or `*`. */
  events: readonly string[]
  /** False: deliveries are created and held. */
  active: boolean
  description: string | null
  createdAt: number
}

/** An instance's default endpoint in the calls for webhooks (contract §5). It has a secret even while it has no URL. */
export interface Webhook {
  instanceId: InstanceId
  url: string | null
  /** `whsec_` and the base64 of 32 bytes; the whole string is the key of X-Service-Signature. */
  secret: string
}

/** How long a replaced secret signs in addition to the new one (contract §5). */
export const PREVIOUS_SECRET_MS = 24 * 60 * 60_000

/** The secrets of an endpoint in force: the current one and those that it has replaced within 24 h, the latest first. */
export interface SigningSecrets {
  current: string
  previous: readonly string[]
}

/** A URL that receives the events about the connections of all instances. */
export type OperatorEndpoint = Omit<Endpoint, 'instanceId'>

/** Whether an endpoint with this filter receives events of this kind. */
export function isSubscribed(events: readonly string[], kind: string): boolean {
  return events.some(pattern => {
    if (pattern === ALL_EVENTS || pattern === kind) return true
    return pattern.endsWith('.*') && kind.startsWith(pattern.slice(0, -1))
  })
}

/** The groups that a filter may name. */
export const EVENT_GROUPS: readonly string[] = [...new Set(EVENT_KINDS.map(kind => `${kind.split('.')[0]}.*`))]

export function isPattern(text: string): boolean {
  return text === ALL_EVENTS || EVENT_GROUPS.includes(text) || (EVENT_KINDS as readonly string[]).includes(text)
}
