import type { Database } from '../engine/schema/database.ts'

type Table = Exclude<keyof Database, 'meta'>

/**
 * Whether the rows of each table are moved, in the order of the move: a table comes after the tables that its foreign
 * keys name. `meta` follows at the end, because the service starts only on a database that has its rows.
 */
const IS_MOVED: Record<Table, boolean> = {
  instances: true,
  api_keys: true,
  endpoints: true,
  operator_endpoints: true,
  connections: true,
  connection_reports: true,
  connection_health: true,
  connection_closes: true,
  handouts: true,
  // A stopped service has no connection that could read them.
  passkey_answers: false,
  leases: true,
  // PostgreSQL only.
  rate_windows: false,
  credentials: true,
  sandbox_records: true,
  media: true,
  media_files: true,
  media_usage: true,
  media_downloads: true,
  media_fetches: true,
  messages: true,
  incoming_messages: true,
  idempotency_keys: true,
  numbers: true,
  contacts: true,
  groups: true,
  directory_fills: true,
  number_orders: true,
  number_budgets: true,
  paces: true,
  pace_uses: true,
  events: true,
  event_feeds: true,
  deliveries: true,
  finished_deliveries: true,
  attempts: true,
  phone_orders: true,
  // No node runs during a move.
  nodes: false,
  panel_sessions: true,
  wrong_keys: true,
  alerts: true,
  alert_targets: true,
  alert_notices: true,
  alert_delays: true,
  accounts: true,
  account_sessions: true,
  account_identities: true,
  audit_log: true,
  audit_head: true,
}

export const MOVED_TABLES: readonly string[] = Object.entries(IS_MOVED).flatMap(([table, isMoved]) =>
  isMoved ? [table] : [],
)

/** SQL that replaces a column's value. The node that held the leases has ended, so they are free immediately. */
export const REPLACED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  leases: { owner: 'null', lease_until: '0' },
}
