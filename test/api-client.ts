import type { PasskeyRequest } from '../src/domain/connection/passkey.ts'
import { noteBody, noteSecret } from './logs/log-capture.ts'
import { until } from './until.ts'

/** A call that was answered with an error. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: string
  readonly retryAfter: string | null

  constructor(status: number, code: string, message: string, retryAfter: string | null) {
    super(`${status} ${code}: ${message}`)
    this.status = status
    this.code = code
    this.retryAfter = retryAfter
  }
}

interface Answer {
  status: number
  headers: Headers
  body: { data: never; nextCursor?: string | null }
}

/** @throws ApiError for any answer but 2xx, and the error of `fetch` if there is no answer */
async function call(
  method: string,
  url: string,
  key: string,
  body?: object,
  headers: Record<string, string> = {},
  timeoutMs?: number,
): Promise<Answer> {
  noteSecret(key)
  noteBody(body)
  const response = await fetch(url, {
    ...(timeoutMs !== undefined && { signal: AbortSignal.timeout(timeoutMs) }),
    method,
    headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) {
    const { error } = JSON.parse(text) as { error: { code: string; message: string } }
    throw new ApiError(response.status, error.code, error.message, response.headers.get('retry-after'))
  }
  const answer = text === '' ? {} : JSON.parse(text)
  noteBody(answer)
  return { status: response.status, headers: response.headers, body: answer }
}

export interface ConnectionView {
  state: string
  cause: string | null
  reason: string
  qr: string | null
  pairingCode: string | null
  passkey: { stage: 'assertion' | 'code'; request: PasskeyRequest | null; code: string | null } | null
  proxy: string | null
  sameNumber: { id: string; name: string }[]
  phone: string | null
  simulated: boolean
}

export interface CallsView {
  reject: boolean
  text: string | null
}

export interface MessageView {
  id: string
  status: string
  to: string
  text: string
  createdAt: string
  sentAt: string | null
  deliveredAt: string | null
  readAt: string | null
  failedAt: string | null
  error: { code: string; message: string } | null
}

export interface EventView {
  id: string
  event: string
  messageId: string | null
  delivery: { url: string; state: string; attemptCount: number } | null
}

export interface NewInstance {
  id: string
  token: string
  state: string
}

export interface SimulatedMessage {
  from: string
  text: string
  group?: string
  name?: string
}

export type AdminClient = ReturnType<typeof adminClient>
export type InstanceClient = ReturnType<typeof instanceClient>

/** A client for `/admin/v1`. @param baseUrl is called for every request */
export function adminClient(baseUrl: () => string, adminKey: string) {
  async function ask<T>(method: string, path: string, body?: object): Promise<T> {
    return (await call(method, `${baseUrl()}/admin/v1${path}`, adminKey, body)).body.data
  }

  return {
    createInstance: (kind: 'whatsapp' | 'sandbox' = 'sandbox', name = 'test') =>
      ask<NewInstance>('POST', '/instances', { kind, name }),
    rename: (id: string, name: string) => ask<NewInstance>('PATCH', `/instances/${id}`, { name }),
    deleteInstance: (id: string) => ask<undefined>('DELETE', `/instances/${id}`),
    connect: (id: string, phone?: string) =>
      ask<ConnectionView>('POST', `/instances/${id}/connect`, phone === undefined ? {} : { phone }),
    connection: (id: string) => ask<ConnectionView>('GET', `/instances/${id}/connection`),
    proxy: (id: string) => ask<{ url: string | null }>('GET', `/instances/${id}/proxy`),
    setProxy: (id: string, url: string | null) => ask<{ url: string | null }>('PUT', `/instances/${id}/proxy`, { url }),
    calls: (id: string) => ask<CallsView>('GET', `/instances/${id}/calls`),
    setCalls: (id: string, calls: object) => ask<CallsView>('PUT', `/instances/${id}/calls`, calls),
    health: (id: string) => ask<{ proxy: string | null }>('GET', `/instances/${id}/health`),
    setPace: (id: string, pace: object) => ask<object>('PUT', `/instances/${id}/pace`, pace),
    logout: (id: string) => ask<ConnectionView>('POST', `/instances/${id}/logout`),
    replaceWebhookSecret: (id: string) => ask<{ secret: string }>('POST', `/instances/${id}/webhook/secret`),
    listEvents: (id: string, query = '') => ask<EventView[]>('GET', `/instances/${id}/events${query}`),
    listMessages: (id: string, query = '') => ask<MessageView[]>('GET', `/instances/${id}/messages${query}`),
    writeAsContact: (id: string, message: SimulatedMessage) =>
      ask<{ id: string }>('POST', `/instances/${id}/sandbox/incoming`, message),

    setPassword: (password: string) => ask<undefined>('PUT', '/password', { password }),

    readPhone: (id: string) => ask<{ on: boolean }>('GET', `/instances/${id}/sandbox/phone`),
    switchPhone: (id: string, on: boolean) => ask<{ on: boolean }>('PUT', `/instances/${id}/sandbox/phone`, { on }),

    /** Waits until the instance is in `state`. */
    untilState(id: string, state: string, withinMs?: number): Promise<ConnectionView> {
      const look = async () => {
        const connection = await this.connection(id)
        return connection.state === state && connection
      }
      return until(`${id} to be ${state}`, look, withinMs)
    },

    /** A sandbox instance whose simulated phone has scanned its QR code. */
    async createConnected(name?: string): Promise<NewInstance> {
      const instance = await this.createInstance('sandbox', name)
      await this.untilState(instance.id, 'connected')
      return instance
    },
  }
}

/**
 * A client for `/v1`, as the instance that owns the token. @param baseUrl is called for every request
 * @param timeoutMs after which a request is aborted; its outcome is then unknown
 */
export function instanceClient(baseUrl: () => string, id: string, token: string, timeoutMs?: number) {
  async function ask<T>(method: string, path: string, body?: object): Promise<T> {
    return (await call(method, `${baseUrl()}/v1${path}`, token, body, {}, timeoutMs)).body.data
  }

  return {
    id,
    token,
    instance: () => ask<{ id: string; state: string; phone: string | null }>('GET', '/instance'),
    message: (messageId: string) => ask<MessageView>('GET', `/messages/${messageId}`),
    webhook: () => ask<{ url: string | null; secret: string; active: boolean }>('GET', `/webhooks/${id}`),
    setWebhook: (url: string) => ask<{ url: string; secret: string }>('PUT', `/webhooks/${id}`, { url }),

    /** Uploads and sends a file. @param message the fields of `POST /v1/messages/media` beside `to` and `media` */
    async sendFile(to: string, bytes: Uint8Array, message: object = {}): Promise<{ id: string; media: string }> {
      const response = await fetch(`${baseUrl()}/v1/media`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        body: bytes as Uint8Array<ArrayBuffer>,
      })
      const { id: media } = ((await response.json()) as { data: { id: string } }).data
      return { ...(await ask<{ id: string }>('POST', '/messages/media', { to, media, ...message })), media }
    },

    async sendMedia(body: object, idempotencyKey: string): Promise<{ id: string; replayed: boolean }> {
      const key = { 'x-idempotency-key': idempotencyKey }
      const answer = await call('POST', `${baseUrl()}/v1/messages/media`, token, body, key, timeoutMs)
      const { id: messageId } = answer.body.data as { id: string }
      return { id: messageId, replayed: answer.headers.get('idempotent-replayed') === 'true' }
    },

    eraseMedia: (media: string) => ask<undefined>('DELETE', `/media/${media}`),

    async send(to: string, text: string, idempotencyKey?: string): Promise<{ id: string; replayed: boolean }> {
      const { headers, body } = await call(
        'POST',
        `${baseUrl()}/v1/messages/text`,
        token,
        { to, text },
        idempotencyKey === undefined ? {} : { 'x-idempotency-key': idempotencyKey },
        timeoutMs,
      )
      const { id: messageId } = body.data as { id: string }
      return { id: messageId, replayed: headers.get('idempotent-replayed') === 'true' }
    },
  }
}
