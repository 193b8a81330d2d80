import { Type } from 'typebox'
import type { Instance } from '../../../domain/instance.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Store } from '../../../store/store.ts'
import { isId } from '../../input.ts'
import { eventIdSchema } from '../../resources/events/event.ts'
import { instanceIdSchema } from '../../resources/instance.ts'

export const instanceParams = Type.Object({ id: instanceIdSchema })
export const eventParams = Type.Object({ id: instanceIdSchema, eventId: eventIdSchema })

/** @throws Refusal `instance_not_found`, also for a deleted instance */
export async function getInstanceOrRefuse(store: Store, id: string): Promise<Instance> {
  return orNotFound(isId(id) ? await store.instances.find(id) : null)
}

/** @throws Refusal unless the instance exists and is a sandbox */
export async function getSandboxOrRefuse(store: Store, id: string): Promise<Instance> {
  const instance = await getInstanceOrRefuse(store, id)
  if (instance.kind !== 'sandbox') throw new Refusal('not_a_sandbox')
  return instance
}

/** @throws Refusal `instance_not_found` for null, which the store returns if there is no such instance */
export function orNotFound<T>(found: T | null): T {
  if (found === null) throw new Refusal('instance_not_found')
  return found
}
