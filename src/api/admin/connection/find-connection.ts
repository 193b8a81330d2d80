import type { ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { type ConnectionView, connectionView } from '../../resources/connection.ts'

/** The current connection of an instance; null if there is no such instance. */
export async function findConnection({ store, settings, now }: ApiContext, id: string): Promise<ConnectionView | null> {
  if (!isId(id)) return null
  // The instance first: its fields, such as the linked number, are recorded before the connection's state or with it.
  const instance = await store.instances.find(id)
  const stored = await store.connections.find(id)
  return instance && stored && connectionView(instance, stored, settings.simulated ?? false, now())
}
