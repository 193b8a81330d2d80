import { AsyncLocalStorage } from 'node:async_hooks'
import type { ILogger } from 'baileys/lib/Utils/logger.js'
import type { Logger } from 'pino'

const LIBRARY_FILE = /[\\/]node_modules[\\/]((?:baileys|libsignal)[\\/][^)\s]+)/
const PLACE = /:\d+:\d+\)?$/
/** Longer than any log message of Baileys. */
const MAX_SENTENCE = 160

/** Receives errors that the library leaves unhandled. */
interface LibraryErrors {
  /** A promise was rejected, or handling a stanza threw. The socket can continue. */
  failed(error: unknown): void
  /** A callback of the event loop threw. It may have left the socket in an inconsistent state. */
  broke(error: unknown): void
}

const current = new AsyncLocalStorage<LibraryScope | undefined>()

/**
 * Marks all work of the library for one socket: calls, and the timers, promises and sockets that they create. The mark is
 * still readable in Node's `unhandledRejection` and `uncaughtException` handlers, which assign the error to the socket.
 */
export class LibraryScope {
  /** Null once the socket has ended, because a timer of the library may reference the scope for days. */
  #errors: LibraryErrors | null

  constructor(errors: LibraryErrors) {
    this.#errors = errors
  }

  /** The scope of the running code, or of the error that is being handled. */
  static get current(): LibraryScope | undefined {
    return current.getStore()
  }

  run<T>(work: () => T): T {
    return current.run(this, work)
  }

  /** Ignores all later errors. */
  end(): void {
    this.#errors = null
  }

  failed(error: unknown): void {
    this.#errors?.failed(error)
  }

  broke(error: unknown): void {
    this.#errors?.broke(error)
  }
}

/** A proxy whose methods run outside of any scope, because their errors are the service's own. */
export function outsideLibrary<T extends object>(object: T): T {
  return new Proxy(object, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => current.run(undefined, Reflect.apply, value, target, args)
    },
  })
}

/** Runs calls into Baileys for one socket and logs unhandled errors. No caller waits longer than the socket lives. */
export class LibraryCalls extends LibraryScope {
  readonly #end = new AbortController()
  /** Aborted when the link has ended. */
  readonly closed = this.#end.signal
  readonly #logger: Logger
  #failures = 0

  /** @param onBroken an exception may have left the socket in an inconsistent state */
  constructor(logger: Logger, onBroken: () => void) {
    super({
      failed: error => this.#unhandled(error),
      broke: error => {
        this.#unhandled(error)
        onBroken()
      },
    })
    this.#logger = logger
  }

  override end(): void {
    super.end()
    this.#end.abort()
  }

  /**
   * Baileys never settles some calls when a socket ends, and rejects others with a bare number.
   * @throws LinkClosed when the link ends first; otherwise what `work` threw
   */
  async orClosed<T>(work: () => Promise<T>): Promise<T> {
    const { closed } = this
    const { promise: ended, reject } = Promise.withResolvers<never>()
    const onClose = () => reject(new LinkClosed())
    closed.addEventListener('abort', onClose, { once: true })
    if (closed.aborted) onClose()
    try {
      return await Promise.race([ended, this.run(work)])
    } finally {
      closed.removeEventListener('abort', onClose)
    }
  }

  /** Runs `work` without waiting for it. A failure is logged under the name of the step. */
  inBackground(step: string, work: () => Promise<unknown>): void {
    this.run(work).catch(error => this.logFailure(step, error))
  }

  logFailure(step: string, error: unknown): void {
    if (this.closed.aborted) return
    const { name, output } = (error ?? {}) as { name?: string; output?: { statusCode?: number } }
    this.#logger.debug({ step, error: name, code: output?.statusCode }, 'whatsapp.step_failed')
  }

  /** Logs the first error, the second, the fourth and so on: a peer can cause any number of them. */
  #unhandled(error: unknown): void {
    this.#failures += 1
    if ((this.#failures & (this.#failures - 1)) !== 0) return
    this.#logger.warn({ ...describeLibraryError(error), failures: this.#failures }, 'whatsapp.library_failed')
  }
}

/** The socket ended during a call. */
export class LinkClosed extends Error {
  override readonly name = 'LinkClosed'
  constructor() {
    super('The link to WhatsApp has ended.')
  }
}

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

/** True if the library created the error, or if it is not an `Error`: Baileys rejects with bare numbers. */
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

/** Baileys logs this with the attributes of a receipt, and then sends the receipt. It has no other hook there. */
const SENDING_RECEIPT = 'sending receipt for messages'
/** Baileys logs this, and its query returns undefined. */
const UNANSWERED = 'timed out waiting for message'

/**
 * Logs Baileys' warnings and errors at debug level. The objects that Baileys logs contain keys, message content, JIDs
 * and stanzas. They are dropped. Its messages may quote a JID, so they are redacted.
 * @param onReceipt may change the attributes of the receipt
 * @param onUnanswered called in the context of a query that WhatsApp has not answered in time
 */
export function createLibraryLogger(
  logger: Logger,
  onReceipt: (attributes: Record<string, string>) => void = () => undefined,
  onUnanswered: () => void = () => undefined,
): ILogger {
  const log = (first: unknown, second?: string) => {
    const sentence = typeof first === 'string' ? first : second
    if (sentence === UNANSWERED) onUnanswered()
    if (sentence) logger.debug({ sentence: redact(sentence) }, 'whatsapp.library')
  }
  const ignore = () => undefined
  const library: ILogger = {
    // At this level Baileys does not build its debug and trace lines.
    level: 'warn',
    child: () => library,
    trace: ignore,
    debug: (fields, sentence) => {
      if (sentence === SENDING_RECEIPT) onReceipt((fields as { attrs: Record<string, string> }).attrs)
    },
    info: ignore,
    warn: log,
    error: log,
  }
  return library
}

/** Replaces everything that could be a number, an address or a key. */
export function redact(sentence: string): string {
  return sentence
    .slice(0, MAX_SENTENCE)
    .replace(/\S*@\S*/g, '…')
    .replace(/\d{4,}/g, '…')
    .replace(/[A-Za-z0-9+/=]{24,}/g, '…')
}
