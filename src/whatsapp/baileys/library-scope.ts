import { AsyncLocalStorage } from 'node:async_hooks'
import type { WASocket } from 'baileys'

/** Called for errors that no code in the library handles. */
export interface LibraryErrors {
  /** A promise was rejected, or the handling of a stanza threw. The socket can go on. */
  failed(error: unknown): void
  /** A callback of the event loop threw. It may have left the socket half changed. */
  broke(error: unknown): void
}

const current = new AsyncLocalStorage<LibraryScope | undefined>()

/**
 * Marks what the library does for one socket: calls, and the timers, promises and sockets that follow from them. Node
 * keeps the mark in the handlers of `unhandledRejection` and `uncaughtException`, so that an error has an owner.
 */
export class LibraryScope {
  /** Null once the socket has ended: a timer of the library may keep the scope for days. */
  #errors: LibraryErrors | null

  constructor(errors: LibraryErrors) {
    this.#errors = errors
  }

  /** The scope of the code that runs, or of the error that is being handled. */
  static get current(): LibraryScope | undefined {
    return current.getStore()
  }

  run<T>(work: () => T): T {
    return current.run(this, work)
  }

  /** What fails from now on concerns nobody. */
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

/** The same object, whose methods run outside of any scope: their errors are the service's own. */
export function outsideLibrary<T extends object>(ours: T): T {
  return new Proxy(ours, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => current.run(undefined, () => value.apply(target, args))
    },
  })
}

/** The events by which Baileys gives out one stanza: whole, by its kind, or by the query that it answers. */
const STANZA_EVENT = /^(?:frame$|CB:|TAG:)/

/**
 * A stanza that a listener cannot bear is reported and dropped; the ones after it are read. Without this the exception
 * would pass for a frame that cannot be decrypted, which ends the socket at every login that brings the stanza again.
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
