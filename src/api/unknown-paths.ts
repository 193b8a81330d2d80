import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AllowedMethods } from './allowed-methods.ts'
import type { Api } from './context.ts'

/**
 * Answers what no route of this scope matches: 404, or 405 where another method would do. It refuses before the body
 * is read, and after the scope's own checks.
 */
export function refuseUnknownPaths(scope: Api, allowed: AllowedMethods): void {
  const refuse = (request: FastifyRequest, reply: FastifyReply, done: (error: Error) => void) => {
    done(allowed.refuse(request, reply))
  }
  // Fastify takes any hook here; its types know but two, of which one has to be named.
  const hooks = { onRequest: refuse, preHandler: [] }
  scope.setNotFoundHandler(hooks, (request, reply) => {
    throw allowed.refuse(request, reply)
  })
}
