import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import type { Api, Budget } from '../../context.ts'
import { unavailable } from '../error-handler.ts'

/** Open requests and streams of callers with a key. */
const MAX_OPEN = 2_000
/** Open requests of other callers. They are short: the store answers or finds their key. */
const MAX_OPEN_OF_STRANGERS = 500
/** Beyond this limit the least recently seen callers are forgotten. */
const MAX_CALLERS = 10_000

/**
 * Refuses requests beyond a limit with 503 and `Retry-After`, except probes. A request counts while the service works on it:
 * not while the body of an unknown caller arrives (its size and time are limited), nor while an answer waits for its
 * reader. Unknown callers have a separate budget.
 */
export function refuseWhenBusy(
  api: Api,
  callers: KnownCallers,
  limits: Readonly<Record<Budget, number>> = { known: MAX_OPEN, strangers: MAX_OPEN_OF_STRANGERS },
): void {
  const open: Record<Budget, number> = { known: 0, strangers: 0 }
  api.decorateRequest('budget', null)
  /** Requests that were answered, or whose caller disconnected. They may reach later hooks, and must not be counted again. */
  const ended = new WeakSet<FastifyRequest>()

  /** Counts the request against this budget instead of its current one. @returns false beyond the limit */
  function count(request: FastifyRequest, wanted: Budget | null): boolean {
    const budget = ended.has(request) ? null : wanted
    if (request.budget !== null) open[request.budget] -= 1
    request.budget = budget
    if (budget === null) return true
    open[budget] += 1
    return open[budget] <= limits[budget] || request.routeOptions.config.quiet === true
  }

  api.addHook('onRequest', (request, reply, done) => {
    // 'close' covers callers that disconnect before the answer.
    const end = () => {
      ended.add(request)
      count(request, null)
    }
    for (const event of ['prefinish', 'close']) reply.raw.once(event, end)
    done(count(request, callers.has(request.raw) ? 'known' : 'strangers') ? undefined : unavailable())
  })
  // When this hook runs, every key has been checked, except keys in a body.
  api.addHook('preParsing', (request, _reply, payload, done) => {
    if (request.hasKey) count(request, 'known')
    else if (request.budget === 'strangers') count(request, null)
    done(null, payload)
  })
  api.addHook('preValidation', (request, _reply, done) => {
    done(request.budget !== null || count(request, 'strangers') ? undefined : unavailable())
  })
  api.addHook('onSend', (request, _reply, payload, done) => {
    if (request.budget === 'strangers') count(request, null)
    done(null, payload)
  })
  api.addHook('onResponse', (request, reply, done) => {
    if (request.hasKey) callers.add(request.raw)
    else if (reply.statusCode === 401) callers.forget(request.raw)
    done()
  })
}

/**
 * Remembers callers whose key was accepted. This grants no access. It only selects the budgets that a request counts
 * against before its key is checked, so that other callers cannot exhaust the budget of callers with a key.
 */
export class KnownCallers {
  readonly #known = new BoundedMap<string, true>(MAX_CALLERS)
  /** Each request is looked up several times and hashed once. */
  readonly #digests = new WeakMap<IncomingMessage, string | null>()

  has(request: IncomingMessage): boolean {
    const digest = this.#digestOf(request)
    return digest !== null && this.#known.has(digest)
  }

  add(request: IncomingMessage): void {
    const digest = this.#digestOf(request)
    if (digest !== null) this.#known.set(digest, true)
  }

  forget(request: IncomingMessage): void {
    const digest = this.#digestOf(request)
    if (digest !== null) this.#known.delete(digest)
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
