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
