import { ADMIN, ApiError, isFromProxy, noAnswer } from './client.ts'

/** A file that the service has stored. */
export interface Uploaded {
  id: string
  size: number
}

/**
 * Uploads a file. Unlike `fetch`, `XMLHttpRequest` reports the progress.
 * @param onProgress gets a number from 0 to 1
 * @throws ApiError
 */
export function uploadFile(
  instanceId: string,
  file: File,
  onProgress: (part: number) => void,
  signal: AbortSignal,
): Promise<Uploaded> {
  const { promise, resolve, reject } = Promise.withResolvers<Uploaded>()
  const request = new XMLHttpRequest()
  const query = file.name === '' ? '' : `?${new URLSearchParams({ filename: file.name.slice(-255) })}`
  request.open('POST', `${ADMIN}/instances/${instanceId}/media${query}`)
  request.responseType = 'json'
  request.setRequestHeader('content-type', file.type || 'application/octet-stream')
  request.upload.addEventListener('progress', ({ loaded, total }) => onProgress(total === 0 ? 0 : loaded / total))
  request.addEventListener('load', () => {
    const answer = request.response as { data?: Uploaded; error?: { code: string; message: string } } | null
    if (request.status === 201 && answer?.data) resolve(answer.data)
    else if (isFromProxy(request.status, answer)) reject(noAnswer(true))
    else reject(toError(request.status, answer?.error))
  })
  request.addEventListener('error', () => reject(noAnswer(true)))
  request.addEventListener('abort', () => reject(signal.reason))
  signal.addEventListener('abort', () => request.abort(), { once: true })
  request.send(file)
  return promise
}

function toError(status: number, error: { code: string; message: string } | undefined): ApiError {
  const { code, message } = error ?? { code: 'internal_error', message: `The service answered ${status}.` }
  return new ApiError({ code, message, status, isChange: true })
}
