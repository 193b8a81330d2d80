import type { FastifyRequest } from 'fastify'
import { includesRole, type Role } from '../../../domain/access.ts'
import { isOperatorEndpoint } from '../../../domain/events/endpoint.ts'
import type { EndpointId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { ACCESS } from './access.ts'

const OF_AN_INSTANCE = '/admin/v1/instances/:id'

/**
 * Refuses calls that the caller's role does not include (403), and calls about an instance that the caller's account may not reach (404,
 * as if there were no such instance). The admin key and sessions without an account have an owner's rights.
 * Unknown addresses need no role.
 * @throws Refusal
 */
export function authorize(request: FastifyRequest): void {
  const { account, is404, routeOptions } = request
  if (account === null || is404 || routeOptions.config.refusesOnly) return
  const operation = (routeOptions.schema as { operationId?: string } | undefined)?.operationId ?? ''
  const needed = Object.hasOwn(ACCESS, operation) ? ACCESS[operation]! : 'owner'
  if (!includesRole(account.role, needed)) throw new Refusal('forbidden', `Only ${PEOPLE[needed]} may do this.`)
  const { id } = request.params as { id?: string }
  const isOfInstance = routeOptions.url?.startsWith(OF_AN_INSTANCE) === true
  if (isOfInstance && !mayReach(request, id ?? '')) throw new Refusal('instance_not_found')
}

const PEOPLE: Readonly<Record<Role, string>> = {
  owner: 'an owner',
  operator: 'an owner or operator',
  viewer: 'somebody who is signed in',
}

/** Whether the caller's account may reach this instance. */
export function mayReach({ account }: Pick<FastifyRequest, 'account'>, instanceId: string): boolean {
  return !account?.instances || account.instances.includes(instanceId)
}

/** The endpoints whose URLs and signatures are hidden from the caller. Only owners see those of operator endpoints. */
export function hiddenFrom(request: Pick<FastifyRequest, 'account'>): (endpointId: EndpointId) => boolean {
  if (hasRole(request, 'owner')) return () => false
  return hasRole(request, 'operator') ? isOperatorEndpoint : () => true
}

/** Whether the caller may make calls that need `role`. */
export function hasRole({ account }: Pick<FastifyRequest, 'account'>, role: Role): boolean {
  return account === null || includesRole(account.role, role)
}
