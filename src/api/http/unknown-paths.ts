import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import type { AllowedMethods } from './allowed-methods.ts'

/**
 * Answers what no route of this scope matches: 404, or 405 where another method would do. It refuses before the body
 * is read, and after the scope's own checks.
 */
export function refuseUnknownPaths(scope: Api, allowed: AllowedMethods): void {
  const refuse = refuseWith(allowed)
  // Fastify takes any hook here; its types know but two, of which one has to be named.
  const hooks = { onRequest: refuse, preHandler: [] }
  scope.setNotFoundHandler(hooks, unreachable)
}

/** For a fixed address that a parameter's route would answer to other methods: GET `/messages/text` is no message. */
export function refuseOtherMethods(scope: Api, allowed: AllowedMethods, url: string, methods: string[]): void {
  scope.route({
    method: methods,
    url,
    schema: { hide: true },
    config: { refusesOnly: true },
    onRequest: refuseWith(allowed),
    handler: unreachable,
  })
}

function refuseWith(allowed: AllowedMethods) {
  return (request: FastifyRequest, reply: FastifyReply, done: (error: Error) => void): void => {
    done(allowed.refuse(request, reply))
  }
}

function unreachable(): never {
  throw new Error('The hook before has refused the request.')
}
