import type { ApiContext } from '../../context.ts'
import { isId } from '../../input.ts'
import { type ConnectionView, connectionView } from '../../resources/connection.ts'

/** The connection of an instance as it is now; null without such an instance. */
export async function findConnection({ store, settings, now }: ApiContext, id: string): Promise<ConnectionView | null> {
  if (!isId(id)) return null
  // One after the other: what goes with a state, such as the number of `connected`, is recorded with it or before.
  const instance = await store.instances.find(id)
  const stored = await store.connections.find(id)
  return instance && stored && connectionView(instance, stored, settings.simulated ?? false, now())
}
