import type { FastifyRequest } from 'fastify'
import { Refusal } from '../../../../domain/refusal.ts'
import type { ApiContext, OidcApi } from '../../../context.ts'
import { isSameOrigin } from '../session-cookie.ts'

/**
 * The provider, for a request that a page of the panel sent from `PUBLIC_URL`, the address to which the provider sends the
 * browser back.
 * @throws Refusal
 */
export function providerFor({ oidc, settings }: ApiContext, request: FastifyRequest): OidcApi {
  if (oidc === null) throw new Refusal('oidc_not_configured')
  const publicUrl = settings.publicUrl ?? null
  if (!isSameOrigin(request, publicUrl)) throw new Refusal('cross_site_request')
  const { origin } = request.headers
  if (publicUrl !== null && origin !== undefined && origin !== publicUrl.origin)
    throw new Refusal('oidc_wrong_address', `To sign in with the provider, open the panel at ${publicUrl.origin}.`)
  return oidc
}
