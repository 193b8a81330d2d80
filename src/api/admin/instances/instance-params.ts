import { Type } from 'typebox'
import type { Instance } from '../../../domain/instance.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Store } from '../../../store/store.ts'
import { isId } from '../../input.ts'
import { instanceIdSchema } from '../../resources/instance.ts'

export const instanceParams = Type.Object({ id: instanceIdSchema })

/** @throws Refusal `instance_not_found`, also for a deleted instance */
export async function getInstanceOrRefuse(store: Store, id: string): Promise<Instance> {
  return orNotFound(isId(id) ? await store.instances.find(id) : null)
}

/** @throws Refusal `instance_not_found` for null, which the store returns if there is no such instance */
export function orNotFound<T>(found: T | null): T {
  if (found === null) throw new Refusal('instance_not_found')
  return found
}
