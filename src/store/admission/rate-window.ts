import type { InstanceId } from '../../domain/ids.ts'
import type { Admitted } from './admission.ts'

/** How long a window is open, in milliseconds (contract §2). */
export const WINDOW_MS = 60_000

/** A call as the window counts it, of which it is the `calls`th. */
export function admitted(instanceId: InstanceId, calls: number, resetMs: number, limit: number): Admitted {
  return { instanceId, withinRate: calls <= limit, limit, remaining: Math.max(0, limit - calls), resetMs }
}
