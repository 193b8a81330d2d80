import type { FastifyRequest } from 'fastify'
import type { ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { type ConnectionView, connectionView } from '../../resources/connection.ts'
import { hasRole } from '../access/authorize.ts'

/** A longer list would not help. */
const MAX_SAME_NUMBER = 10

/** The current connection of an instance; null if there is no such instance. Viewers do not get the codes, which link a phone. */
export async function findConnection(
  { store, settings, now }: ApiContext,
  request: FastifyRequest,
  id: string,
): Promise<ConnectionView | null> {
  if (!isId(id)) return null
  // The instance is read first: its fields, such as the linked number, are recorded before the connection's
  // state, or together with it.
  const instance = await store.instances.find(id)
  const stored = await store.connections.find(id)
  if (!instance || !stored) return null
  const reached = request.account?.instances ?? null
  const sameNumber = await store.connections.listSameNumber(stored, MAX_SAME_NUMBER, reached)
  const view = connectionView(instance, stored, settings.simulated ?? false, now(), sameNumber)
  return hasRole(request, 'operator') ? view : { ...view, qr: null, pairingCode: null, passkey: null }
}
