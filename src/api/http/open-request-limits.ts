import type { FastifyRequest } from 'fastify'
import type { Api, Budget } from '../context.ts'
import { unavailable } from './error-handler.ts'
import { KnownCallers } from './known-callers.ts'

/** Requests and streams of callers with a key, open at once. A body has 1 MiB at most. */
const MAX_OPEN = 2_000
/** Requests of everybody else. They are answered, or found to have a key, as soon as the store has been asked. */
const MAX_OPEN_OF_STRANGERS = 500

/**
 * Beyond so many open requests new ones get 503 with `Retry-After`; probes are answered all the same. A request is open
 * while the service works on it: not while the body of a stranger is still to come (there is a limit to its size and its
 * time), and not while an answer waits for its reader. Strangers have a budget of their own.
 */
export function refuseWhenBusy(
  api: Api,
  limits: Readonly<Record<Budget, number>> = { known: MAX_OPEN, strangers: MAX_OPEN_OF_STRANGERS },
): void {
  const callers = new KnownCallers()
  const open: Record<Budget, number> = { known: 0, strangers: 0 }
  api.decorateRequest('budget', null)

  function release(request: FastifyRequest): void {
    if (request.budget !== null) open[request.budget] -= 1
    request.budget = null
  }

  /** @returns false beyond the limit */
  function count(request: FastifyRequest, budget: Budget): boolean {
    release(request)
    request.budget = budget
    open[budget] += 1
    return open[budget] <= limits[budget] || request.routeOptions.config.quiet === true
  }

  api.addHook('onRequest', (request, reply, done) => {
    // Also when the caller has gone before the answer.
    for (const end of ['prefinish', 'close']) reply.raw.once(end, () => release(request))
    done(count(request, callers.has(request) ? 'known' : 'strangers') ? undefined : unavailable())
  })
  // From here on the keys of all scopes were checked, save those that come with the body.
  api.addHook('preParsing', (request, _reply, payload, done) => {
    if (request.hasKey) count(request, 'known')
    else if (request.budget === 'strangers') release(request)
    done(null, payload)
  })
  api.addHook('preValidation', (request, _reply, done) => {
    done(request.budget !== null || count(request, 'strangers') ? undefined : unavailable())
  })
  api.addHook('onSend', (request, _reply, payload, done) => {
    if (request.budget === 'strangers') release(request)
    done(null, payload)
  })
  api.addHook('onResponse', (request, reply, done) => {
    if (request.hasKey) callers.add(request)
    else if (reply.statusCode === 401) callers.forget(request)
    done()
  })
}
