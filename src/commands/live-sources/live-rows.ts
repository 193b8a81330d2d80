import type { Row } from '../sessions/read-rows.ts'

export const GATEWAYS = ['evolution', 'waha'] as const
export type Gateway = (typeof GATEWAYS)[number]

/** What a database of another program contains. */
export interface LiveRows {
  /** A value of null: the row only names the session. */
  rows: Row[]
  /** How many programs beside this one are connected to the same database. Null if it does not say. */
  otherClients: number | null
}

export const CONNECT_WITHIN_MS = 10_000
export const READ_WITHIN_MS = 60_000
/** Of all sessions together. They are in memory at the same time. */
export const MAX_SOURCE_BYTES = 256 * 1024 * 1024
