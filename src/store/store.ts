import type { Foreground } from '../kit/foreground.ts'
import type { Accounts } from './accounts/accounts.ts'
import type { Admission } from './admission/admission.ts'
import type { Alerts } from './alerts/alerts.ts'
import type { ApiKeys } from './api-keys/api-keys.ts'
import type { Audit } from './audit/audit.ts'
import type { StoreClock } from './clock.ts'
import type { Connections } from './connections/connections.ts'
import type { Conversations } from './conversations/conversations.ts'
import type { Credentials } from './credentials/credentials.ts'
import type { Deliveries } from './deliveries/deliveries.ts'
import type { Directory } from './directory/directory.ts'
import type { Endpoints } from './endpoints/endpoints.ts'
import type { OperatorEndpoints } from './endpoints/operator-endpoints.ts'
import type { Events } from './events/events.ts'
import type { Handouts } from './handouts/handouts.ts'
import type { Hints } from './hints.ts'
import type { Instances } from './instances/instances.ts'
import type { Leases } from './leases/leases.ts'
import type { Downloads } from './media/downloads.ts'
import type { Fetches } from './media/fetches.ts'
import type { MediaRows } from './media/media.ts'
import type { Messages } from './messages/messages.ts'
import type { Numbers } from './numbers/numbers.ts'
import type { Paces } from './pace/paces.ts'
import type { Retention } from './retention/retention.ts'
import type { PhoneOrders } from './sandbox/phone-orders.ts'
import type { SandboxStorage } from './sandbox/sandbox-storage.ts'
import type { Sessions } from './sessions/sessions.ts'
import type { Statistics } from './statistics/statistics.ts'
import type { Transfers } from './transfers/transfers.ts'

/**
 * All persistent data of Pombal. `test/contract` tests these guarantees on both SQLite and PostgreSQL.
 *
 * - A write resolves only after its commit is synced to disk.
 * - Every method is one commit, or reads one consistent state, unless its comment says otherwise.
 * - An owner's write takes its `Lease` and is fenced by it. If the lease was lost, nothing is written and `LeaseLost` is
 *   thrown.
 * - A store that cannot be reached, or is closing, throws `StoreUnavailable`. It is then unknown whether a write happened.
 * - `hints` announces changes after their commit. A hint may be lost; correctness never depends on one.
 * - Times are milliseconds since 1970. `now` is the caller's clock and only sets timestamps. Leases, rate windows and the
 *   age of a connection use the store's own clock.
 */
export interface Store {
  readonly clock: StoreClock
  readonly hints: Hints
  /** Has priority during every write except the record of a failed attempt that will be retried. */
  readonly foreground: Pick<Foreground, 'hasPriority'>
  readonly admission: Admission
  readonly instances: Instances
  readonly apiKeys: ApiKeys
  readonly connections: Connections
  readonly handouts: Handouts
  readonly messages: Messages
  readonly conversations: Conversations
  readonly media: MediaRows
  readonly downloads: Downloads
  readonly fetches: Fetches
  readonly events: Events
  readonly endpoints: Endpoints
  readonly operatorEndpoints: OperatorEndpoints
  readonly deliveries: Deliveries
  readonly leases: Leases
  readonly credentials: Credentials
  readonly transfers: Transfers
  readonly numbers: Numbers
  readonly directory: Directory
  readonly paces: Paces
  readonly sandbox: SandboxStorage
  readonly phoneOrders: PhoneOrders
  readonly retention: Retention
  readonly statistics: Statistics
  readonly sessions: Sessions
  readonly alerts: Alerts
  readonly accounts: Accounts
  readonly audit: Audit
  /** Writes a row and syncs it to disk. @throws StoreUnavailable */
  ping(): Promise<void>
  /** Finishes pending writes, then closes. Later calls throw `StoreUnavailable`. */
  close(): Promise<void>
}
