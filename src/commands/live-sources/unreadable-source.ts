import { MAX_SOURCE_BYTES } from './live-rows.ts'

/** The database cannot be read. The message is for the operator, and contains no password. */
export class UnreadableSource extends Error {
  override readonly name = 'UnreadableSource'
}

/** An error of a client library as a sentence. Errors of connections may have only a code. */
export function unreadable(url: URL, error: unknown, hint = ''): UnreadableSource {
  if (error instanceof UnreadableSource) return error
  const { message = '', code = '' } = error as { message?: string; code?: string }
  const reason = (message || code || 'it gives no reason').replaceAll(/\s+/g, ' ')
  return new UnreadableSource(`The database at ${url.host} cannot be read: ${reason}${hint}`)
}

export function tooLarge(url: URL): UnreadableSource {
  return new UnreadableSource(
    `The sessions at ${url.host} are larger than ${MAX_SOURCE_BYTES / 1024 / 1024} MiB in all.`,
  )
}
