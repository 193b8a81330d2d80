import { ADMIN, ApiError, noAnswer, proxyError } from './client.ts'

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
    const { status } = request
    const answer = request.response as { data?: Uploaded; error: { code: string; message: string } } | null
    if (status === 201 && answer?.data) resolve(answer.data)
    else reject(proxyError(status, answer, true) ?? new ApiError({ ...answer!.error, status, isChange: true }))
  })
  request.addEventListener('error', () => reject(noAnswer(true)))
  request.addEventListener('abort', () => reject(signal.reason))
  signal.addEventListener('abort', () => request.abort(), { once: true })
  request.send(file)
  return promise
}
