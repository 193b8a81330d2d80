import type { AccountIdentitiesTable, AccountSessionsTable, AccountsTable } from './accounts.ts'
import type { AlertDelaysTable, AlertNoticesTable, AlertsTable, AlertTargetsTable } from './alerts.ts'
import type { ApiKeysTable } from './api-keys.ts'
import type { AuditHeadTable, AuditLogTable } from './audit.ts'
import type { PhoneOrdersTable, WrongKeysTable } from './between-nodes.ts'
import type {
  ContactsTable,
  DirectoryFillsTable,
  GroupsTable,
  NumberBudgetsTable,
  NumberOrdersTable,
} from './directory.ts'
import type { AttemptsTable, DeliveriesTable, EventFeedsTable, EventsTable, FinishedDeliveriesTable } from './events.ts'
import type { HandoutsTable, PasskeyAnswersTable } from './handouts.ts'
import type { ConnectionClosesTable, ConnectionHealthTable } from './health.ts'
import type {
  ConnectionReportsTable,
  ConnectionsTable,
  EndpointsTable,
  InstancesTable,
  LeasesTable,
  OperatorEndpointsTable,
  RateWindowsTable,
} from './instances.ts'
import type { MediaDownloadsTable, MediaFetchesTable, MediaFilesTable, MediaTable, MediaUsageTable } from './media.ts'
import type { IdempotencyKeysTable, IncomingMessagesTable, MessagesTable, NumbersTable } from './messages.ts'
import type { NodesTable } from './nodes.ts'
import type { PacesTable, PaceUsesTable } from './pace.ts'
import type { PanelSessionsTable } from './panel.ts'
import type { CredentialsTable, MetaTable, SandboxRecordsTable } from './secrets.ts'

/**
 * All tables. Times are milliseconds since 1970. The database assigns each `Generated` `seq`, in increasing order. A
 * scheduled message has a random negative `seq` until its release.
 * Every key contains the instance, so that a larger installation can shard by it. Exceptions: `seq`, the digests of
 * tokens, API keys and linking links, and the tables `meta`, `panel_sessions`, `nodes`, `wrong_keys`,
 * `operator_endpoints`, and those of the alerts, the accounts and the audit.
 */
export interface Database {
  instances: InstancesTable
  api_keys: ApiKeysTable
  endpoints: EndpointsTable
  operator_endpoints: OperatorEndpointsTable
  connections: ConnectionsTable
  connection_reports: ConnectionReportsTable
  connection_health: ConnectionHealthTable
  connection_closes: ConnectionClosesTable
  handouts: HandoutsTable
  passkey_answers: PasskeyAnswersTable
  leases: LeasesTable
  /** PostgreSQL only. */
  rate_windows: RateWindowsTable
  messages: MessagesTable
  incoming_messages: IncomingMessagesTable
  idempotency_keys: IdempotencyKeysTable
  numbers: NumbersTable
  contacts: ContactsTable
  groups: GroupsTable
  directory_fills: DirectoryFillsTable
  number_orders: NumberOrdersTable
  number_budgets: NumberBudgetsTable
  paces: PacesTable
  pace_uses: PaceUsesTable
  events: EventsTable
  event_feeds: EventFeedsTable
  deliveries: DeliveriesTable
  finished_deliveries: FinishedDeliveriesTable
  attempts: AttemptsTable
  media: MediaTable
  media_files: MediaFilesTable
  media_usage: MediaUsageTable
  media_downloads: MediaDownloadsTable
  media_fetches: MediaFetchesTable
  credentials: CredentialsTable
  sandbox_records: SandboxRecordsTable
  phone_orders: PhoneOrdersTable
  nodes: NodesTable
  panel_sessions: PanelSessionsTable
  wrong_keys: WrongKeysTable
  alerts: AlertsTable
  alert_targets: AlertTargetsTable
  alert_notices: AlertNoticesTable
  alert_delays: AlertDelaysTable
  meta: MetaTable
  accounts: AccountsTable
  account_sessions: AccountSessionsTable
  account_identities: AccountIdentitiesTable
  audit_log: AuditLogTable
  audit_head: AuditHeadTable
}
