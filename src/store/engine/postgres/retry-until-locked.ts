import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { StoreLogger } from '../logger.ts'

/** SQLSTATE `lock_not_available` and `deadlock_detected`. */
const NOT_LOCKED = new Set(['55P03', '40P01'])
const AGAIN_MS = 1_000

/**
 * Repeats a migration until it gets its table locks. Other nodes queue up behind a pending lock, so the migration gives up
 * soon (`lock_timeout`), lets them work, and tries again.
 */
export async function retryUntilLocked<T>(change: () => Promise<T>, logger: StoreLogger | undefined): Promise<T> {
  for (;;) {
    try {
      return await change()
    } catch (error) {
      if (!(error instanceof pg.DatabaseError) || !NOT_LOCKED.has(error.code ?? '')) throw error
      logger?.warn({ error: error.message }, 'store.migration_waits')
      await sleep(AGAIN_MS)
    }
  }
}
