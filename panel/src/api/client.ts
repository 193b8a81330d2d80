/** A refusal of the service, or `unreachable` if there was no answer. Decide by `code`. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: string
  readonly status: number
  /** True for a request that changes something. Without an answer, the change may have been made. */
  readonly isChange: boolean
  readonly details: readonly { field: string; message: string }[]
  /** Seconds to wait before retrying. Null if the service gave none. */
  readonly retryAfterSeconds: number | null
  readonly requestId: string | null

  constructor(fields: Pick<ApiError, 'code' | 'message' | 'status'> & Partial<ApiError>) {
    super(fields.message)
    this.code = fields.code
    this.status = fields.status
    this.isChange = fields.isChange ?? false
    this.details = fields.details ?? []
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
}

export const ADMIN = '/admin/v1'

/**
 * Calls the management API with the session's cookie.
 * @param path below `base`
 * @returns the answer's body; undefined for 204
 * @throws ApiError
 */
export async function call<T>(
  path: string,
  { method = 'GET', query, body, signal, base = ADMIN }: Call = {},
): Promise<T> {
  let response: Response
  try {
    response = await fetch(base + path + searchOf(query), {
      method,
      credentials: 'same-origin',
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      ...(signal && { signal }),
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError({
      code: 'unreachable',
      message: 'The service did not answer.',
      status: 0,
      isChange: method !== 'GET',
    })
  }
  if (response.status === 204) return undefined as T
  const answer: unknown = await response.json().catch(() => null)
  if (!response.ok) throw toError(response, answer)
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

function toError(response: Response, answer: unknown): ApiError {
  const { error } = (answer ?? {}) as { error?: Pick<ApiError, 'code' | 'message' | 'details'> }
  return new ApiError({
    code: error?.code ?? 'internal_error',
    message: error?.message ?? `The service answered ${response.status}.`,
    status: response.status,
    details: error?.details ?? [],
    retryAfterSeconds: Number(response.headers.get('retry-after')) || null,
    requestId: response.headers.get('x-request-id'),
  })
}
