import type { Logger } from 'pino'
import { redact } from './library-logger.ts'
import { LibraryScope } from './library-scope.ts'

const LIBRARY_FILE = /[\\/]node_modules[\\/]((?:baileys|libsignal)[\\/][^)\s]+)/
const PLACE = /:\d+:\d+\)?$/

/**
 * Keeps the process alive when Baileys or libsignal leaves an error unhandled. The error is passed to the scope of the
 * socket that caused it. Without a scope, an error of the library is logged.
 * @param crash called with any other error, which is the service's own
 */
export function containLibraryErrors(logger: Logger, crash: (error: unknown) => void): void {
  const contain = (error: unknown, kind: 'failed' | 'broke') => {
    const scope = LibraryScope.current
    if (scope) scope[kind](error)
    else if (isOfLibrary(error)) logger.error(describeLibraryError(error), 'whatsapp.library_failed')
    else crash(error)
  }
  process.on('unhandledRejection', reason => contain(reason, 'failed'))
  process.on('uncaughtException', error => contain(error, 'broke'))
}

/** True if the library created the error. Values that are not an `Error` are its own: Baileys rejects with bare numbers. */
export function isOfLibrary(error: unknown): boolean {
  if (!(error instanceof Error)) return true
  const frames = error.stack?.split('\n').filter(line => line.trimStart().startsWith('at ') && PLACE.test(line))
  const frame = frames?.find(line => !line.includes('node:'))
  return frame !== undefined && LIBRARY_FILE.test(frame)
}

/** The fields of a log line, without numbers, keys or texts. */
export function describeLibraryError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { error: typeof error }
  const code = (error as { output?: { statusCode?: unknown } }).output?.statusCode
  return {
    error: error.name,
    sentence: redact(error.message),
    ...(typeof code === 'number' && { code }),
    at: LIBRARY_FILE.exec(error.stack ?? '')?.[1],
  }
}
