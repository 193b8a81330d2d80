import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { BoundedMap } from '../../../kit/bounded-map.ts'

/** Beyond this limit the least recently seen callers are forgotten. */
const MAX_CALLERS = 10_000

/**
 * Remembers callers whose key was accepted, and who holds the key. This grants no access. It only selects what a request
 * counts against before its key is checked, so that other callers cannot exhaust the budget of callers with a key.
 */
export class KnownCallers {
  readonly #holders = new BoundedMap<string, string>(MAX_CALLERS)
  /** Each request is looked up several times and hashed once. */
  readonly #digests = new WeakMap<IncomingMessage, string | null>()

  has(request: IncomingMessage): boolean {
    return this.holderOf(request) !== null
  }

  /** Null: the caller is not known. */
  holderOf(request: IncomingMessage): string | null {
    const digest = this.#digestOf(request)
    return digest === null ? null : (this.#holders.get(digest) ?? null)
  }

  add(request: IncomingMessage, holder: string): void {
    const digest = this.#digestOf(request)
    if (digest !== null) this.#holders.set(digest, holder)
  }

  forget(request: IncomingMessage): void {
    const digest = this.#digestOf(request)
    if (digest !== null) this.#holders.delete(digest)
  }

  /** The digest of the headers that can carry a key; null without them. */
  #digestOf(request: IncomingMessage): string | null {
    const known = this.#digests.get(request)
    if (known !== undefined) return known
    const { authorization, cookie } = request.headers
    const isEmpty = authorization === undefined && cookie === undefined
    const digest = isEmpty ? null : hash('sha256', `${authorization ?? ''}\n${cookie ?? ''}`, 'base64')
    this.#digests.set(request, digest)
    return digest
  }
}
