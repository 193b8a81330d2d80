import type { InstanceId } from '../../domain/ids.ts'
import type { Lease } from '../leases/leases.ts'

/** What any node asks of an instance's simulated phone, which its owner runs. `asked` hints both ways. */
export interface PhoneOrders {
  /** @param id new for each order; the same one again is only a reminder */
  leave(instanceId: InstanceId, id: string, body: string): Promise<void>
  /** What was left, oldest first; each is given out once. */
  take(lease: Lease): Promise<{ id: string; body: string }[]>
  answer(lease: Lease, id: string, answer: string): Promise<void>
  /** Null: not answered yet. An answer is given out once. */
  takeAnswer(instanceId: InstanceId, id: string): Promise<string | null>
}
