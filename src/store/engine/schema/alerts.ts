import type { AlertChannel, AlertRule } from '../../../domain/alert.ts'

export interface AlertTargetsTable {
  id: string
  channel: AlertChannel
  name: string
  /** Sealed JSON. */
  address: Uint8Array
  created_at: number
  /** When its notices may be sent: after a failure, or when the claim of a node expires. */
  due_at: number
  failures: number
  last_error: string | null
  last_sent_at: number | null
}

/** Problems. At most one without an end for each rule and subject. */
export interface AlertsTable {
  id: string
  rule: AlertRule
  subject: string
  detail: string
  since: number
  began_at: number | null
  gone_since: number | null
  ended_at: number | null
}

/** A message that still has to be sent to a target. */
export interface AlertNoticesTable {
  target_id: string
  alert_id: string
  is_end: number
}

/** Delays that differ from the defaults. */
export interface AlertDelaysTable {
  rule: AlertRule
  minutes: number | null
}
