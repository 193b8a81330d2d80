import type { InstanceId } from '../../domain/ids.ts'
import type { Lease } from '../leases/leases.ts'

/** How long a caller waits for the answer to an order. An order that is older is not executed. */
export const ORDER_VALID_FOR_MS = 5_000

/** Orders from any node to the simulated phone of an instance. The hint `phone` announces orders and answers. */
export interface PhoneOrders {
  /** @param id unique for each order. A call with a known ID only repeats the hint */
  leave(instanceId: InstanceId, id: string, body: string): Promise<void>
  /** New orders, oldest first. Each is returned once. Deletes those whose callers no longer wait. */
  take(lease: Lease): Promise<{ id: string; body: string }[]>
  answer(lease: Lease, id: string, answer: string): Promise<void>
  /** Null if there is no answer yet. An answer is returned once. */
  takeAnswer(instanceId: InstanceId, id: string): Promise<string | null>
}
