import type { Logger } from 'pino'
import { redact } from './library-logger.ts'
import { LibraryScope } from './library-scope.ts'

const LIBRARY_FILE = /[\\/]node_modules[\\/]((?:baileys|libsignal)[\\/][^)\s]+)/
const PLACE = /:\d+:\d+\)?$/

/**
 * Keeps the process alive when Baileys or libsignal leaves an error unhandled. It concerns the socket in whose scope it
 * happened. Without a scope it is logged if it comes from the library.
 * @param crash called for any other error: it is the service's own
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

/** Whether the error was made in the library. What is no `Error` is: Baileys rejects with bare numbers, the service never. */
export function isOfLibrary(error: unknown): boolean {
  if (!(error instanceof Error)) return true
  const frames = error.stack?.split('\n').filter(line => line.trimStart().startsWith('at ') && PLACE.test(line))
  const frame = frames?.find(line => !line.includes('node:'))
  return frame !== undefined && LIBRARY_FILE.test(frame)
}

/** For a line of the log: nothing that could be a number, a key or a text. */
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
