import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import type { AllowedMethods } from './allowed-methods.ts'

/** Answers a browser that opens an unknown address. Returns false for any other request. */
export type UnknownPage = (request: FastifyRequest, reply: FastifyReply) => boolean

/**
 * Answers requests without a matching route in this scope: 405 if the address has other methods, else 404. It refuses
 * after the scope's checks and before the body is read.
 */
export function refuseUnknownPaths(scope: Api, allowed: AllowedMethods, unknownPage: UnknownPage = () => false): void {
  const refuse = refuseWith(allowed, unknownPage)
  // Fastify accepts any hook here, but its types require one of two.
  const hooks = { onRequest: refuse, preHandler: [] }
  scope.setNotFoundHandler(hooks, unreachable)
}

/** Refuses other methods at a fixed address that a parameter route would match: GET `/messages/text` is not a message. */
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

function refuseWith(allowed: AllowedMethods, unknownPage: UnknownPage = () => false) {
  return (request: FastifyRequest, reply: FastifyReply, done: (error: Error) => void): void => {
    const refusal = allowed.refuse(request, reply)
    if (refusal.code === 'not_found' && unknownPage(request, reply)) return
    done(refusal)
  }
}

function unreachable(): never {
  throw new Error('The earlier hook has refused the request.')
}
