import { inTime } from './in-time.ts'

/** A probe waits little longer; a store that takes this long cannot be called able to accept. */
const ANSWER_WITHIN_MS = 2_000

export interface ReadinessSources {
  /** Rejects unless the store can write. */
  ping(): Promise<void>
  /** Whether this node holds its leases: without them it would accept, but not deliver. */
  isRunning(): boolean
}

/** Whether this node can accept and deliver now. Never rejects. */
export async function isReady({ ping, isRunning }: ReadinessSources): Promise<boolean> {
  if (!isRunning()) return false
  return inTime(ping(), ANSWER_WITHIN_MS).then(
    () => true,
    () => false,
  )
}
