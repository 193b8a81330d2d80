import type { FastifyRequest } from 'fastify'
import type { Api } from '../../context.ts'
import { unavailable } from '../error-handler.ts'
import type { KnownCallers } from './known-callers.ts'

/** Open requests and streams of callers with a key. */
const MAX_OPEN = 2_000
/** Open requests of other callers. They are short: a request whose key is accepted then counts against `MAX_OPEN`. */
const MAX_OPEN_OF_STRANGERS = 500
/**
 * A holder of keys may use up to an eighth of the places that are still free: 223 of 2,000 while nobody else uses any
 * (its own requests also reduce what is free), fewer as the node fills. So a few holders cannot take all places, and a
 * holder without an open request still gets one.
 */
const SHARE_OF_FREE = 8

/** Callers without an accepted key count together. */
const STRANGERS = 'strangers'

/**
 * Refuses requests beyond a limit with 503 and `Retry-After`, except those that are always served. A request counts while
 * the service works on it: not while the body of a caller without a key arrives (its size and time are limited), nor
 * while an answer waits for its reader. Callers with a key have a separate budget, and each holder of keys has a share of
 * it.
 */
export function refuseWhenBusy(
  api: Api,
  callers: KnownCallers,
  limits: { readonly known: number; readonly strangers: number } = {
    known: MAX_OPEN,
    strangers: MAX_OPEN_OF_STRANGERS,
  },
): void {
  const open = new OpenRequests()
  api.decorateRequest('countsFor', null)
  /** Requests that were answered or whose caller disconnected. They may reach later hooks but must not count again. */
  const ended = new WeakSet<FastifyRequest>()

  /** Counts the request for this holder instead of its current one. @returns false beyond the limit */
  function count(request: FastifyRequest, wanted: string | null): boolean {
    const holder = ended.has(request) ? null : wanted
    if (request.countsFor === holder) return true
    if (request.countsFor !== null) open.change(request.countsFor, -1)
    request.countsFor = holder
    if (holder === null) return true
    // Before the count changes `open.known`.
    const limit = holder === STRANGERS ? limits.strangers : Math.ceil((limits.known - open.known) / SHARE_OF_FREE)
    return open.change(holder, 1) <= limit || request.routeOptions.config.alwaysServed === true
  }

  api.addHook('onRequest', (request, reply, done) => {
    // 'close' covers callers that disconnect before the answer.
    const end = () => {
      ended.add(request)
      count(request, null)
    }
    for (const event of ['prefinish', 'close']) reply.raw.once(event, end)
    done(count(request, callers.holderOf(request.raw) ?? STRANGERS) ? undefined : unavailable())
  })
  // When this hook runs, every key has been checked, except keys in a body. If the call takes no key, a known caller's
  // header does not reserve a place while the body arrives.
  api.addHook('preParsing', (request, _reply, payload, done) => {
    if (count(request, request.key?.holder ?? null)) done(null, payload)
    else done(unavailable())
  })
  api.addHook('preValidation', (request, _reply, done) => {
    done(request.countsFor !== null || count(request, STRANGERS) ? undefined : unavailable())
  })
  api.addHook('onSend', (request, _reply, payload, done) => {
    if (request.countsFor === STRANGERS) count(request, null)
    done(null, payload)
  })
  api.addHook('onResponse', (request, reply, done) => {
    if (reply.statusCode === 401) callers.forget(request.raw)
    else if (request.key !== null) callers.add(request.key)
    done()
  })
}

/** Counts the open requests. */
class OpenRequests {
  /** The open requests of all callers with a key. */
  known = 0
  /** The open requests of each holder of a key, and of all strangers together. */
  readonly #byHolder = new Map<string, number>()

  /** @returns the open requests of this holder */
  change(holder: string, by: 1 | -1): number {
    const own = (this.#byHolder.get(holder) ?? 0) + by
    if (own === 0) this.#byHolder.delete(holder)
    else this.#byHolder.set(holder, own)
    if (holder !== STRANGERS) this.known += by
    return own
  }
}
