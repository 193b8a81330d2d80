import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { callerAddress } from '../admin/sign-in/caller-address.ts'

/** Statuses that are logged with the caller's address, to find guessing and excessive callers. */
const REFUSED_CALLERS: ReadonlySet<number> = new Set([401, 429])

/**
 * Logs one line per request. It contains the route, but neither path, query, headers nor body, so it holds no secrets.
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
