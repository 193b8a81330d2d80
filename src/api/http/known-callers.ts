import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { BoundedMap } from '../../kit/bounded-map.ts'

interface WithHeaders {
  headers: IncomingHttpHeaders
}

/** Beyond this limit the least recently seen callers are forgotten. */
const MAX_CALLERS = 10_000

/**
 * Remembers callers whose key was accepted. This grants no access. It only selects the budgets that a request counts
 * against before its key is checked, so that other callers cannot exhaust the budget of callers with a key.
 */
export class KnownCallers {
  readonly #digests = new BoundedMap<string, true>(MAX_CALLERS)

  has(request: WithHeaders): boolean {
    const digest = digestOf(request)
    return digest !== null && this.#digests.has(digest)
  }

  add(request: WithHeaders): void {
    const digest = digestOf(request)
    if (digest !== null) this.#digests.set(digest, true)
  }

  forget(request: WithHeaders): void {
    const digest = digestOf(request)
    if (digest !== null) this.#digests.delete(digest)
  }
}

/** The digest of the headers that can carry a key; null without them. */
function digestOf({ headers: { authorization, cookie } }: WithHeaders): string | null {
  if (authorization === undefined && cookie === undefined) return null
  return hash('sha256', `${authorization ?? ''}\n${cookie ?? ''}`, 'base64')
}
