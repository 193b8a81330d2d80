import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { callerAddress } from '../admin/sign-in/caller-address.ts'

/** Who guesses, and who calls too often, can be found by the address. */
const REFUSED_CALLERS: ReadonlySet<number> = new Set([401, 429])

/**
 * One wide line per request. It names the route, not the address asked for, and holds neither headers nor body nor
 * query: no secret can be in it.
 */
export function createRequestLog(logger: Logger) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const { config, url } = request.routeOptions
    const level = config.quiet ? 'debug' : 'info'
    if (logger.isLevelEnabled(level)) {
      logger[level](
        {
          requestId: request.id,
          method: request.method,
          route: url,
          status: reply.statusCode,
          code: request.refusalCode || undefined,
          instanceId: request.instanceId || undefined,
          address: REFUSED_CALLERS.has(reply.statusCode) ? callerAddress(request) : undefined,
          durationMs: Math.round(reply.elapsedTime * 1000) / 1000,
        },
        'request.answered',
      )
    }
    done()
  }
}
