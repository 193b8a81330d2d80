import { AsyncLocalStorage } from 'node:async_hooks'
import type { WASocket } from 'baileys'

/** Receives errors that the library leaves unhandled. */
export interface LibraryErrors {
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

/** The events that Baileys emits for one stanza: all stanzas, by kind, and by the query that it answers. */
const STANZA_EVENT = /^(?:frame$|CB:|TAG:)/

/**
 * Reports and drops a stanza whose listener throws. The next stanzas are still read. Otherwise Baileys would treat the
 * exception as a decryption failure, and the socket would end at each login at which WhatsApp delivers the stanza again.
 */
export function containStanzas({ ws }: WASocket, scope: LibraryScope): void {
  const emit = ws.emit.bind(ws)
  ws.emit = (event: string, ...args: unknown[]) => {
    if (!STANZA_EVENT.test(event)) return emit(event, ...args)
    try {
      return emit(event, ...args)
    } catch (error) {
      scope.failed(error)
      return true
    }
  }
}
