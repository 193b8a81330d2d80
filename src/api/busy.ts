import type { Api } from './context.ts'
import { unavailable } from './errors.ts'

/** Requests and streams open at once. A body has 1 MiB at most; before token and rate are checked no more than 16 KiB of it are read. */
const MAX_OPEN = 2_000

/** Beyond so many open requests new ones get 503 with `Retry-After`; probes are answered all the same. */
export function refuseWhenBusy(api: Api, maxOpen = MAX_OPEN): void {
  let open = 0
  api.addHook('onRequest', (request, reply, done) => {
    open += 1
    // Also when the caller has gone before the answer.
    reply.raw.once('close', () => {
      open -= 1
    })
    done(open > maxOpen && !request.routeOptions.config.quiet ? unavailable() : undefined)
  })
}
