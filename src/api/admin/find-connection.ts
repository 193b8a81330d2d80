import type { ApiContext } from '../context.ts'
import { isId } from '../input.ts'
import { type ConnectionView, connectionView } from '../resources/connection.ts'

/** The connection of an instance as it is now; null without such an instance. */
export async function findConnection({ store, settings, now }: ApiContext, id: string): Promise<ConnectionView | null> {
  if (!isId(id)) return null
  const [instance, stored] = await Promise.all([store.instances.find(id), store.connections.find(id)])
  return instance && stored && connectionView(instance, stored, settings.simulated ?? false, now())
}
