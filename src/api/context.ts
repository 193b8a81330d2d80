import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { Logger } from 'pino'
import type { EventKind, TEST_EVENT } from '../domain/event.ts'
import type { EventId, InstanceId } from '../domain/ids.ts'
import type { SigningSecrets } from '../domain/instance.ts'
import type { RefusalCode } from '../domain/refusal.ts'
import type { Store } from '../store/store.ts'

/** Open requests are limited for callers with a key, and apart from them for everybody else (`busy.ts`). */
export type Budget = 'known' | 'strangers'

/** A Fastify instance whose handlers take their types from TypeBox schemas. */
export type Api = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

export interface ApiSettings {
  adminKey: string
  /** Where callers reach the service, for the reference; null: the address it was read from. */
  publicUrl?: URL | null
  /** Addresses and CIDR networks of proxies that may say who calls, and over what. Default: none. */
  trustedProxies?: readonly string[]
  /** All instances are linked to a simulated WhatsApp (`WHATSAPP_URL`). */
  simulated?: boolean
  /** How often a connection stream polls when no hint arrives. Default: 3 s. */
  streamPollMs?: number
  /** The settings whose values the OpenAPI document states. */
  documented: DocumentedSettings
}

export interface DocumentedSettings {
  ratePerMinute: number
  webhookTimeoutMs: number
  webhookRetryDelaysMs: readonly number[]
}

/** What a simulated contact writes to a sandbox instance. */
export interface ContactMessage {
  from: string
  text: string
  group?: string
  name?: string
}

interface AttemptToSign {
  body: Uint8Array
  secrets: SigningSecrets
  eventId: EventId
  kind: EventKind | typeof TEST_EVENT
  /** From 1. */
  attemptNumber: number
  /** The attempt's time, milliseconds since 1970. */
  now: number
}

export type PostOutcome =
  | { kind: 'answered'; status: number; excerpt: string | null }
  | { kind: 'failed'; error: string }

export interface ApiOptions {
  store: Store
  settings: ApiSettings
  logger: Logger
  /** Whether webhooks may reach the literal address in `url`; `not_literal`: it holds a name. */
  checkWebhookUrl(url: URL): 'allowed' | 'blocked' | 'not_literal'
  sandbox: {
    enabled: boolean
    /** Resolves once the simulated network has the message. A `Refusal` it throws is told to the caller. */
    writeAs(instanceId: InstanceId, message: ContactMessage): Promise<{ id: string }>
    /** @throws Refusal `service_unavailable` while no node runs the phone; so do the others */
    isPhoneOn(instanceId: InstanceId): Promise<boolean>
    /** Resolves once the simulated phone is on, or off. */
    switchPhone(instanceId: InstanceId, on: boolean): Promise<void>
  }
  webhooks: {
    /** The headers of one attempt, signed. */
    headersOf(attempt: AttemptToSign): Record<string, string>
    /** Makes exactly one request, to where webhooks may go; never rejects. */
    post(request: { url: string; headers: Record<string, string>; body: Uint8Array }): Promise<PostOutcome>
  }
  /** The folder of the built panel. */
  panelDir: string
  version: string
  /** What is counted, as Prometheus reads it. */
  metrics(): Promise<{ contentType: string; text: string }>
  /** Whether the service can accept and deliver. */
  isReady(): boolean | Promise<boolean>
  /** Whether it is about to stop, so that callers should not keep their connections. Default: never. */
  isDraining?: () => boolean
  /** Milliseconds since 1970. */
  now?: () => number
}

/** What the routes are built from. */
export interface ApiContext extends Required<ApiOptions> {
  /** Aborted when the server begins to close. */
  closing: AbortSignal
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The instance that owns the caller's token; empty outside `/v1` and before admission. */
    instanceId: InstanceId
    /** The panel's session that asks; empty where the admin key does, and outside `/admin/v1`. */
    sessionId: string
    /** The token, the admin key or the session of this request was accepted. */
    hasKey: boolean
    /** What the request counts against while it is open (`busy.ts`). */
    budget: Budget | null
    /** The code answered, for the log; empty when the call succeeded. */
    refusalCode: RefusalCode | ''
  }
  interface FastifyContextConfig {
    /** The refusals of this operation alone; those common to all are added in the reference. */
    refusals?: readonly RefusalCode[]
    /** The operation has a body, which may be left out. */
    optionalBody?: boolean
    /** Asked by machines every few seconds: its line in the log is of level debug. */
    quiet?: boolean
    /** The route is there to refuse: its methods do not count as allowed. */
    refusesOnly?: boolean
  }
}
