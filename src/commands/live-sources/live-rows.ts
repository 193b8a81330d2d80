import type { Row } from '../sessions/read-rows.ts'

export const GATEWAYS = ['evolution', 'waha'] as const
export type Gateway = (typeof GATEWAYS)[number]

/** What a database of another program contains. */
export interface LiveRows {
  /** A value of null: the row only names the session. */
  rows: Row[]
  /** How many programs besides this one are connected to the same database. Null if the database does not report it. */
  otherClients: number | null
}

export const CONNECT_WITHIN_MS = 10_000
export const READ_WITHIN_MS = 60_000
/** The size limit of all sessions together, which are in memory at the same time. */
export const MAX_SOURCE_BYTES = 256 * 1024 * 1024
