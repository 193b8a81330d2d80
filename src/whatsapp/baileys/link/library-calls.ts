import type { Logger } from 'pino'
import { describeLibraryError } from '../library-errors.ts'
import { LibraryScope } from '../library-scope.ts'

/** Runs calls into Baileys for one socket. Their errors are logged, and no caller waits longer than the socket lives. */
export class LibraryCalls {
  readonly scope: LibraryScope
  readonly #end = new AbortController()
  /** Aborted when the link has ended. */
  readonly closed = this.#end.signal
  readonly #logger: Logger
  #failures = 0

  /** @param onBroken an exception may have left the socket in an inconsistent state */
  constructor(logger: Logger, onBroken: () => void) {
    this.#logger = logger
    this.scope = new LibraryScope({
      failed: error => this.#unhandled(error),
      broke: error => {
        this.#unhandled(error)
        onBroken()
      },
    })
  }

  end(): void {
    this.scope.end()
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
      return await Promise.race([ended, this.scope.run(work)])
    } finally {
      closed.removeEventListener('abort', onClose)
    }
  }

  /** Runs `work` without waiting for it. A failure is logged under the name of the step. */
  inBackground(step: string, work: () => Promise<unknown>): void {
    this.scope.run(work).catch(error => this.logFailure(step, error))
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
