import type { InstanceId } from '../../domain/ids.ts'
import type { Admitted } from './admission.ts'

/** Length of a rate window (contract §2). */
export const WINDOW_MS = 60_000

/** @param calls calls in the window so far, including this one */
export function admitted(instanceId: InstanceId, calls: number, resetMs: number, limit: number): Admitted {
  return { instanceId, withinRate: calls <= limit, limit, remaining: Math.max(0, limit - calls), resetMs }
}
