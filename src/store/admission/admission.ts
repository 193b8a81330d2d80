import type { InstanceId } from '../../domain/ids.ts'

/** Who is calling, and whether the call is within the rate (contract §2). */
export interface Admitted {
  instanceId: InstanceId
  /** False: this call is over the limit. */
  withinRate: boolean
  limit: number
  /** Calls left in the window after this one, never below 0. */
  remaining: number
  /** Milliseconds until the window ends. */
  resetMs: number
}

export interface Admission {
  /**
   * Finds the instance of a token, by its digest in hexadecimal digits, and counts the call against it: 100 (setting) per window of 60 s that opens with the
   * first call. Null for a token that is unknown (or whose instance was deleted), which counts nowhere. A replaced
   * token is unknown at once. In memory on SQLite, one round trip and the database's clock on PostgreSQL.
   */
  admit(tokenDigest: string): Promise<Admitted | null>
}
