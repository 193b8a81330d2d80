import type {
  IDataObject,
  IExecuteFunctions,
  IHookFunctions,
  IHttpRequestOptions,
  ILoadOptionsFunctions,
  ITriggerFunctions,
} from 'n8n-workflow'

export const CREDENTIALS = 'pombalApi'

type Context = IExecuteFunctions | IHookFunctions | ILoadOptionsFunctions | ITriggerFunctions

/** A call of Pombal's API. @param path begins with `/v1` */
export async function callPombal(context: Context, path: string, options: Partial<IHttpRequestOptions> = {}) {
  const { baseUrl } = await context.getCredentials<{ baseUrl: string }>(CREDENTIALS)
  return context.helpers.httpRequestWithAuthentication.call(context, CREDENTIALS, {
    method: 'GET',
    json: true,
    ...options,
    url: `${baseUrl.replace(/\/+$/, '')}${path}`,
  })
}

/** The same for answers of the form `{data: …}`. */
export async function callForData<T = IDataObject>(
  context: Context,
  path: string,
  options: Partial<IHttpRequestOptions> = {},
): Promise<T> {
  return (await callPombal(context, path, options))?.data as T
}

/** The status of a refused call; null if there was no answer. */
export function statusOf(error: unknown): number | null {
  const { httpCode, status, statusCode, response, cause } = error as {
    httpCode?: string | number | null
    status?: number
    statusCode?: number
    response?: { status?: number; statusCode?: number }
    cause?: unknown
  }
  const found = httpCode ?? status ?? statusCode ?? response?.status ?? response?.statusCode
  if (found !== undefined && found !== null && Number.isInteger(Number(found))) return Number(found)
  return cause === undefined || cause === null ? null : statusOf(cause)
}

interface Answer {
  data?: unknown
  headers?: Record<string, unknown>
}

/**
 * Pombal's stable `code` (docs/errors.md) and message for a refused call. Empty if another program answered, or none.
 */
export function refusalOf(error: unknown): { code?: string; message?: string } {
  const { context, response } = error as { context?: { data?: unknown }; response?: Answer }
  const data = parsed(context?.data ?? response?.data) as { error?: { code?: unknown; message?: unknown } } | undefined
  const { code, message } = data?.error ?? {}
  return {
    ...(typeof code === 'string' && { code }),
    ...(typeof message === 'string' && { message }),
  }
}

/** The answer to a download is bytes, even if it is an error. */
function parsed(data: unknown): unknown {
  if (!(data instanceof ArrayBuffer) && !ArrayBuffer.isView(data)) return data
  try {
    return JSON.parse(new TextDecoder().decode(data))
  } catch {
    return undefined
  }
}

/** The `Retry-After` of a refused call; null if it has none. n8n keeps the original error as the cause of its own. */
export function retryAfterMsOf(error: unknown): number | null {
  const { response, cause } = error as { response?: Answer; cause?: unknown }
  const seconds = Number(response?.headers?.['retry-after'])
  if (Number.isFinite(seconds) && seconds > 0) return seconds * 1_000
  return cause === undefined || cause === null ? null : retryAfterMsOf(cause)
}
