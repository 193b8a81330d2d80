import type { Scope } from '../../domain/access.ts'
import type { InstanceId } from '../../domain/ids.ts'

/** The instance of a call, and its calls in the rate window (contract §2). */
export interface Admitted {
  instanceId: InstanceId
  /** The API key of the call. Null for the instance's token, which has every scope. */
  key: { id: string; name: string; scopes: readonly Scope[] } | null
  /** Calls in the window so far, including this one. A call beyond `limit` must be refused. */
  calls: number
  limit: number
  /** Milliseconds until the window ends. */
  resetMs: number
}

export interface Admission {
  /**
   * Finds the instance of a token or API key and counts the call against the instance's limit: `ratePerMinute` calls in a
   * window of 60 s that opens with the first call. Null, and nothing counted, if the token is unknown or was replaced, the key
   * was revoked or has expired, or the instance was deleted. Counts in memory on SQLite; on PostgreSQL in one round trip, by
   * the database's clock.
   * @param tokenDigest SHA-256 of the token or key in hexadecimal
   */
  admit(tokenDigest: string): Promise<Admitted | null>
  /** Whether `admit` would find an instance. Counts nothing. */
  isValid(tokenDigest: string): Promise<boolean>
}
