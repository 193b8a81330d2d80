import { hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { BoundedMap } from '../../kit/bounded-map.ts'

/** Beyond this those seen longest ago are forgotten. */
const MAX_CALLERS = 10_000

/**
 * Remembers who showed a key that was accepted. It opens nothing: it decides whose budget a request counts against
 * before its key has been checked, so that strangers cannot use up what callers with a key need.
 */
export class KnownCallers {
  readonly #digests = new BoundedMap<string, true>(MAX_CALLERS)

  has(request: FastifyRequest): boolean {
    const digest = digestOf(request)
    return digest !== null && this.#digests.has(digest)
  }

  add(request: FastifyRequest): void {
    const digest = digestOf(request)
    if (digest !== null) this.#digests.set(digest, true)
  }

  forget(request: FastifyRequest): void {
    const digest = digestOf(request)
    if (digest !== null) this.#digests.delete(digest)
  }
}

/** Of all that can carry a key; null where there is nothing. */
function digestOf({ headers: { authorization, cookie } }: FastifyRequest): string | null {
  if (authorization === undefined && cookie === undefined) return null
  return hash('sha256', `${authorization ?? ''}\n${cookie ?? ''}`, 'base64')
}
