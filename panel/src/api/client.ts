import { noteServerTime } from './server-clock.ts'

/** A refusal of the service, or `unreachable` if there was no answer. Decide by `code`. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: string
  readonly status: number
  /** True for a request that changes something. Without an answer, the change may have been made. */
  readonly isChange: boolean
  readonly details: readonly { field: string; message: string }[]
  /** What the call was about: the last part of its path that is not an ID, such as `targets`. */
  readonly subject: string
  /** Seconds to wait before retrying. Null if the service gave none. */
  readonly retryAfterSeconds: number | null
  readonly requestId: string | null

  constructor(fields: Pick<ApiError, 'code' | 'message' | 'status'> & Partial<ApiError>) {
    super(fields.message)
    this.code = fields.code
    this.status = fields.status
    this.isChange = fields.isChange ?? false
    this.details = fields.details ?? []
    this.subject = fields.subject ?? ''
    this.retryAfterSeconds = fields.retryAfterSeconds ?? null
    this.requestId = fields.requestId ?? null
  }
}

export type Query = Readonly<Record<string, string | number | undefined>>

interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  query?: Query
  body?: object
  signal?: AbortSignal
  /** Default: the management API. */
  base?: string
  /** Default: every request except GET. */
  isChange?: boolean
}

export const ADMIN = '/admin/v1'
/** A dialog stays open until its call is answered, and browsers wait for ever. */
const CHANGE_WITHIN_MS = 120_000

/**
 * Calls the management API with the session's cookie.
 * @param path below `base`
 * @returns the answer's body; undefined for 204
 * @throws ApiError
 */
export async function call<T>(
  path: string,
  { method = 'GET', query, body, signal, base = ADMIN, isChange = method !== 'GET' }: Call = {},
): Promise<T> {
  // A change with a signal of its own has no limit. AbortSignal.any() is missing in Safari before 17.4.
  const stop = signal ?? (isChange ? AbortSignal.timeout(CHANGE_WITHIN_MS) : null)
  const fail = (error: unknown): never => {
    throw signal?.aborted ? error : noAnswer(isChange)
  }
  const response = await fetch(base + path + searchOf(query), {
    method,
    credentials: 'same-origin',
    ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    signal: stop,
  }).catch(fail)
  noteServerTime(response.headers)
  if (response.status === 204) return undefined as T
  const answer: unknown = await response.json().catch(error => (response.ok ? fail(error) : null))
  if (!response.ok) throw toError(response, answer, isChange, subjectOf(path))
  return answer as T
}

/** Like `call`, for answers of the form `{data}`. */
export async function callData<T>(path: string, options?: Call): Promise<T> {
  return (await call<{ data: T }>(path, options)).data
}

function searchOf(query: Query | undefined): string {
  const present = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== '')
  if (present.length === 0) return ''
  return `?${new URLSearchParams(present.map(([name, value]) => [name, String(value)]))}`
}

const ID = /^[a-z]+_[a-z0-9]{20,}$/

function subjectOf(path: string): string {
  return path.split('/').findLast(part => !ID.test(part)) ?? ''
}

/** The statuses with which a reverse proxy reports that the service did not answer it. */
const NO_ANSWER = new Set([502, 503, 504])

/**
 * The error of an answer that a reverse proxy gave in place of the service. Null if the answer has an error code of the service.
 * @param answer the body, parsed; null if that failed
 */
export function proxyError(status: number, answer: unknown, isChange: boolean): ApiError | null {
  if ((answer as { error?: { code?: string } } | null)?.error?.code !== undefined) return null
  if (NO_ANSWER.has(status)) return noAnswer(isChange)
  const code = status === 413 ? 'too_large_for_proxy' : 'refused_by_proxy'
  return new ApiError({ code, message: `A proxy answered ${status}.`, status, isChange })
}

export function noAnswer(isChange: boolean): ApiError {
  return new ApiError({ code: 'unreachable', message: 'The service did not answer.', status: 0, isChange })
}

function toError(response: Response, answer: unknown, isChange: boolean, subject: string): ApiError {
  const ofProxy = proxyError(response.status, answer, isChange)
  if (ofProxy) return ofProxy
  const { error } = answer as { error: Pick<ApiError, 'code' | 'message'> & Partial<ApiError> }
  return new ApiError({
    code: error.code,
    message: error.message,
    status: response.status,
    details: error.details ?? [],
    subject,
    retryAfterSeconds: Number(response.headers.get('retry-after')) || null,
    requestId: response.headers.get('x-request-id'),
  })
}
