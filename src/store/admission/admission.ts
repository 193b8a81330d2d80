import type { InstanceId } from '../../domain/ids.ts'

/** The instance of a call, and whether the call is within the rate limit (contract §2). */
export interface Admitted {
  instanceId: InstanceId
  withinRate: boolean
  limit: number
  /** Calls left in the window after this one, never below 0. */
  remaining: number
  /** Milliseconds until the window ends. */
  resetMs: number
}

export interface Admission {
  /**
   * Finds the instance of a token and counts the call against its limit: `ratePerMinute` calls in a window of 60 s that
   * opens with the first call. Null, and nothing counted, if the token is unknown, was replaced, or belongs to a deleted
   * instance. Counts in memory on SQLite; on PostgreSQL in one round trip, by the database's clock.
   * @param tokenDigest SHA-256 of the token in hexadecimal
   */
  admit(tokenDigest: string): Promise<Admitted | null>
}
