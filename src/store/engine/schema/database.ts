import type { PhoneOrdersTable, WrongKeysTable } from './between-nodes.ts'
import type { AttemptsTable, DeliveriesTable, EventsTable, FinishedDeliveriesTable } from './events.ts'
import type { ConnectionClosesTable, ConnectionHealthTable, ContactsTable } from './health.ts'
import type { ConnectionsTable, InstancesTable, LeasesTable, RateWindowsTable } from './instances.ts'
import type { IdempotencyKeysTable, IncomingMessagesTable, MessagesTable, NumbersTable } from './messages.ts'
import type { NodesTable } from './nodes.ts'
import type { PanelSessionsTable } from './panel.ts'
import type { CredentialsTable, MetaTable, SandboxRecordsTable } from './secrets.ts'

/**
 * Every table. Moments are milliseconds since 1970; `seq` columns are given out by the database and only grow.
 * Each key but the token's and those of the meta table, the panel's sessions, the nodes and the wrong keys begins with the instance, so that a larger installation can shard by it.
 */
export interface Database {
  instances: InstancesTable
  connections: ConnectionsTable
  connection_health: ConnectionHealthTable
  connection_closes: ConnectionClosesTable
  leases: LeasesTable
  /** PostgreSQL only. */
  rate_windows: RateWindowsTable
  messages: MessagesTable
  incoming_messages: IncomingMessagesTable
  idempotency_keys: IdempotencyKeysTable
  numbers: NumbersTable
  contacts: ContactsTable
  events: EventsTable
  deliveries: DeliveriesTable
  finished_deliveries: FinishedDeliveriesTable
  attempts: AttemptsTable
  credentials: CredentialsTable
  sandbox_records: SandboxRecordsTable
  phone_orders: PhoneOrdersTable
  nodes: NodesTable
  panel_sessions: PanelSessionsTable
  wrong_keys: WrongKeysTable
  meta: MetaTable
}
