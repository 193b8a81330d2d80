import type { InstanceId } from '../../domain/ids.ts'
import type { Lease } from '../leases/leases.ts'

/** Orders from any node to the simulated phone of an instance. The hint `phone` announces orders and answers. */
export interface PhoneOrders {
  /** @param id unique for each order. A call with a known ID only repeats the hint */
  leave(instanceId: InstanceId, id: string, body: string): Promise<void>
  /** New orders, oldest first. Each is returned once. */
  take(lease: Lease): Promise<{ id: string; body: string }[]>
  answer(lease: Lease, id: string, answer: string): Promise<void>
  /** Null if there is no answer yet. An answer is returned once. */
  takeAnswer(instanceId: InstanceId, id: string): Promise<string | null>
}
