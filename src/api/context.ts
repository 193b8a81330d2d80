import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { Logger } from 'pino'
import type { Scope } from '../domain/access.ts'
import type { SigningSecrets } from '../domain/events/endpoint.ts'
import type { EventKind, TEST_EVENT } from '../domain/events/event.ts'
import type { EndpointId, EventId, InstanceId, MessageId } from '../domain/ids.ts'
import type { ContactMessage } from '../domain/incoming-message.ts'
import type { ByteRange, Media } from '../domain/media.ts'
import type { RefusalCode } from '../domain/refusal.ts'
import type { OpenSpan } from '../domain/trace-context.ts'
import type { Admitted } from '../store/admission/admission.ts'
import type { AlertTarget } from '../store/alerts/alerts.ts'
import type { PendingAudit } from '../store/audit/audit.ts'
import type { SessionAccount } from '../store/sessions/sessions.ts'
import type { Store } from '../store/store.ts'
import type { TransferredRow } from '../store/transfers/transfers.ts'

/** A token, an admin key or a session that was accepted. */
export interface AcceptedKey {
  /** The ID of the instance or account that it belongs to, or `admin`. */
  holder: string
  /** `tokenDigest` of the secret. */
  digest: string
}

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
  /** The service's URL in the reference; null: the address that the reference was read from. */
  publicUrl?: URL | null
  /** Addresses and CIDR networks of proxies whose forwarded headers are trusted. Default: none. */
  trustedProxies?: readonly string[]
  /** All instances are connected to a simulated WhatsApp (`WHATSAPP_URL`). */
  simulated?: boolean
  /** Unknown numbers that an instance may have looked up in a day. Default: 500. */
  numberChecksPerDay?: number
  /** Messages that were received earlier do not count as unread. */
  retentionMs: number
  /** How often a stream or a feed reader polls when no hint arrives. Default: 3 s. */
  streamPollMs?: number
  /** The settings whose values the OpenAPI document states. */
  documented: DocumentedSettings
}

export interface DocumentedSettings {
  ratePerMinute: number
  webhookTimeoutMs: number
  webhookRetryDelaysMs: readonly number[]
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

/** The outcome of a test event's request. */
type TestOutcome = { kind: 'answered'; status: number; excerpt: string | null } | { kind: 'failed'; error: string }

export interface MediaApi {
  /** How many bytes an instance's files may take. */
  readonly quotaBytes: number
  /** Whether a file may be fetched from the literal address in `url`; `not_literal` if it contains a name. */
  checkUrl(url: URL): 'allowed' | 'blocked' | 'not_literal'
  /** Resolves when the file is stored. It may leave the rest of `bytes` unread if it throws. */
  upload(
    instanceId: InstanceId,
    upload: {
      bytes: AsyncIterable<Uint8Array>
      length: number | null
      type: string | null
      filename: string | null
      /** The refusal if the instance was deleted during the upload. */
      ifDeleted: RefusalCode
      /** Called when all bytes have arrived. Nothing is stored if it rejects. */
      checkAgain(): Promise<void>
    },
  ): Promise<Media>
  /**
   * @param as `preview`: for the panel, outside the limits of the instance's own downloads. `export`: for the export of
   * a contact, without limits
   */
  open(
    instanceId: InstanceId,
    id: string,
    as?: 'download' | 'preview' | 'export',
  ): Promise<{ media: Media; read(range: ByteRange): Promise<AsyncIterable<Uint8Array>> }>
  erase(instanceId: InstanceId, id: string): Promise<void>
  /**
   * Begins the erasure of a chat's files, which reads all messages of the chat. The caller disposes the result.
   * @throws Refusal `too_many_transfers` if this node is already erasing the files of a chat of the instance
   */
  beginErasure(instanceId: InstanceId): Disposable
}

/** The secrets of one sign-in with the provider. */
export interface OidcAttempt {
  state: string
  nonce: string
  verifier: string
}

/** `email` is null if the provider reports none, or could not be asked. `problem` is for the log. */
interface OidcEmail {
  email: { address: string; isVerified: boolean } | null
  problem: string | null
}

/** `failed`: the answer is not valid. `reason` is for the log. `readEmail` may ask the provider. */
export type OidcCompleted =
  | { kind: 'identified'; issuer: string; subject: string; readEmail(): Promise<OidcEmail> }
  | { kind: 'denied' }
  | { kind: 'unreachable'; reason: string }
  | { kind: 'failed'; reason: string }

/** An OpenID Connect provider. No call rejects. */
export interface OidcApi {
  /** The provider's name as people see it. */
  readonly name: string
  /** Distinguishes this client of this provider from any other. */
  readonly id: string
  begin(): Promise<{ kind: 'begun'; url: string; attempt: OidcAttempt } | { kind: 'unreachable'; reason: string }>
  /** @param answer the query string with which the provider sent the browser back */
  complete(answer: string, attempt: OidcAttempt): Promise<OidcCompleted>
}

/** A linked session of another program. */
interface ReadSession {
  /** Digits only. */
  phone: string
  rows: TransferredRow[]
  keys: number
  unreadable: number
}

export interface ApiOptions {
  store: Store
  settings: ApiSettings
  logger: Logger
  /** Whether webhooks may reach the literal address in `url`; `not_literal` if it contains a name. */
  checkWebhookUrl(url: URL): 'allowed' | 'blocked' | 'not_literal'
  sandbox: {
    enabled: boolean
    /** Resolves once the simulated network has the message. A thrown `Refusal` is answered to the caller. */
    writeAs(instanceId: InstanceId, message: ContactMessage): Promise<{ id: string }>
    /** @throws Refusal `service_unavailable` while no node runs the phone, as do `writeAs` and `switchPhone` */
    isPhoneOn(instanceId: InstanceId): Promise<boolean>
    /** Resolves once the simulated phone is on or off. */
    switchPhone(instanceId: InstanceId, on: boolean): Promise<void>
  }
  proxies: {
    /** Resolves once WhatsApp has answered through the proxy. @throws Refusal */
    check(url: string, instanceId: InstanceId): Promise<void>
  }
  webhooks: {
    /** The headers of one attempt, signed. */
    headersOf(attempt: AttemptToSign): Record<string, string>
    /** Makes one request to an allowed address; never rejects. */
    post(request: {
      url: string
      headers: Record<string, string>
      body: Uint8Array
      /** Undefined if the URL belongs to no instance. */
      endpoint?: { instanceId: InstanceId; id: EndpointId } | undefined
    }): Promise<TestOutcome>
  }
  alerts: {
    /** Whether alerts can be sent by e-mail. */
    canMail: boolean
    /** Sends a test message. @returns null, or why it did not arrive */
    sendTest(target: AlertTarget): Promise<string | null>
  }
  /** Null, the default: people do not sign in with a provider. */
  oidc?: OidcApi | null
  /**
   * Reads a session that another program has stored, by the names of its values (`creds`, or `<type>-<id>`).
   * @returns a string if the session cannot be used, with the reason
   */
  readSession(values: readonly { name: string; json: string }[]): Promise<ReadSession | string>
  /** Null: no storage is configured. Expected failures are thrown as `Refusal`. */
  media: MediaApi | null
  /** Begins the span of an accepted message. Null, the default: traces are off. */
  traces?: { accept(message: { instanceId: InstanceId; id: MessageId }, caller: string | undefined): OpenSpan } | null
  panelDir: string
  /** The disk that holds the data directory. Default: unknown. */
  diskSpace?: () => Promise<{ freeBytes: number; totalBytes: number; isNearlyFull: boolean } | null>
  version: string
  /** The metrics in Prometheus' text format. */
  metrics(): Promise<{ contentType: string; text: string }>
  /** Receives every answered request. `route` is a pattern, `durationMs` is null for a stream. Default: not counted. */
  observer?: {
    onRequest(request: { method: string; route: string; status: number; durationMs: number | null }): void
  } | null
  /** Whether the service can accept and deliver. */
  isReady(): boolean | Promise<boolean>
  /** `isDraining`: the node is about to stop, and callers should not reuse their connections. Default: never. */
  node?: { readonly isDraining: boolean }
  /** Milliseconds since 1970. */
  now?: () => number
}

export interface ApiContext extends Required<ApiOptions> {
  /** Aborted when the server begins to close. */
  closing: AbortSignal
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The instance that owns the caller's token; empty outside `/v1` and before admission. */
    instanceId: InstanceId
    /** The API key of a call under `/v1`. Null: the instance's token, and all other calls. */
    apiKey: Admitted['key']
    /** The account of the session. Null: the admin key or a session without an account, with an owner's rights. */
    account: SessionAccount | null
    /** The panel session of the caller; empty for the admin key and outside `/admin/v1`. */
    sessionId: string
    /** The entry of a call that changes something; null for all others. */
    audit: PendingAudit | null
    /** The token, key or session of this request that was accepted. */
    key: AcceptedKey | null
    /** When `key` was accepted, in milliseconds by `performance.now()`. */
    checkedAt: number
    /** The holder of keys, or the strangers, for whom this request counts (`http/limits/open-request-limits.ts`). */
    countsFor: string | null
    /** The error code of the answer, for the log; empty if the call succeeded. */
    refusalCode: RefusalCode | ''
    /** The message or command that this request created or repeated, for the log; empty if there is none. */
    messageId: MessageId | ''
  }
  interface FastifyContextConfig {
    /** The refusals specific to this operation. The reference adds the common ones. */
    refusals?: readonly RefusalCode[]
    /** The scope that an API key needs for this route under `/v1`. Without it, only the token is admitted. */
    scope?: Scope | 'any'
    optionalBody?: boolean
    /** The body is a file, and the handler reads its bytes. */
    rawBody?: boolean
    /** Called by machines every few seconds and therefore logged at level debug. */
    quiet?: boolean
    /** Served even if too many requests are open. */
    alwaysServed?: boolean
    /** The route only refuses: its methods are not listed in `Allow`. */
    refusesOnly?: boolean
  }
}
