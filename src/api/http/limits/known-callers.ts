import type { IncomingMessage } from 'node:http'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import { sessionToken } from '../../admin/sign-in/session-cookie.ts'
import type { AcceptedKey } from '../../context.ts'
import { parseBearer, tokenDigest } from '../../input.ts'

/** Beyond this limit the least recently seen callers are forgotten. */
const MAX_CALLERS = 10_000

/**
 * Remembers keys that were accepted, and who holds them. This grants no access. It only selects what a request counts
 * against before its key is checked, so that other callers cannot exhaust the budget of callers with a key.
 */
export class KnownCallers {
  /** Holders by the digest of the key alone. Otherwise one key with varying headers could displace all others. */
  readonly #holders: BoundedMap<string, string>
  /** The digests of each request, which is looked up several times but hashed once. */
  readonly #digests = new WeakMap<IncomingMessage, readonly string[]>()

  constructor(maxCallers = MAX_CALLERS) {
    this.#holders = new BoundedMap(maxCallers)
  }

  /** Null: the caller is not known. */
  holderOf(request: IncomingMessage): string | null {
    for (const digest of this.#digestsOf(request)) {
      const holder = this.#holders.get(digest)
      if (holder !== undefined) return holder
    }
    return null
  }

  add({ digest, holder }: AcceptedKey): void {
    this.#holders.set(digest, holder)
  }

  forget(request: IncomingMessage): void {
    for (const digest of this.#digestsOf(request)) this.#holders.delete(digest)
  }

  /** The digest of the bearer token, else of the session cookie, whose name depends on https. */
  #digestsOf(request: IncomingMessage): readonly string[] {
    const found = this.#digests.get(request)
    if (found !== undefined) return found
    const bearer = parseBearer(request.headers.authorization)
    const sessions = () =>
      [true, false].map(isSecure => sessionToken(request, isSecure)).filter(token => token !== null)
    const digests = bearer === null ? sessions().map(tokenDigest) : [tokenDigest(bearer)]
    this.#digests.set(request, digests)
    return digests
  }
}
