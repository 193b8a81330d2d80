import type { Instance } from '../../../domain/instance.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { ApiContext } from '../../context.ts'
import { getInstanceOrRefuse } from '../instances/instance-params.ts'

/** @throws Refusal if there is no such instance, or it is not a sandbox */
export async function getSandboxOrRefuse({ store }: ApiContext, id: string): Promise<Instance> {
  const instance = await getInstanceOrRefuse(store, id)
  if (instance.kind !== 'sandbox') throw new Refusal('not_a_sandbox')
  return instance
}
