import type { Admission } from './admission/admission.ts'
import type { StoreClock } from './clock.ts'
import type { Connections } from './connections/connections.ts'
import type { Credentials } from './credentials/credentials.ts'
import type { Deliveries } from './deliveries/deliveries.ts'
import type { Events } from './events/events.ts'
import type { Hints } from './hints.ts'
import type { Instances } from './instances/instances.ts'
import type { Leases } from './leases/leases.ts'
import type { Messages } from './messages/messages.ts'
import type { Numbers } from './numbers/numbers.ts'
import type { Retention } from './retention/retention.ts'
import type { PhoneOrders } from './sandbox/phone-orders.ts'
import type { SandboxStorage } from './sandbox/sandbox-storage.ts'
import type { Sessions } from './sessions/sessions.ts'
import type { Statistics } from './statistics/statistics.ts'

/**
 * Everything that Pombal remembers, on SQLite or PostgreSQL alike (`test/contract` holds both to these promises).
 *
 * - A promise that resolves to a recorded fact means: committed and synced.
 * - Every method is one commit, or reads one consistent state. None speaks to the network but to the database.
 * - What an owner writes takes its `Lease` and is fenced by it: if the lease has moved on, nothing is written and
 *   `LeaseLost` is thrown.
 * - A store that cannot be reached, or is closing, throws `StoreUnavailable`; whether a write happened is then unknown.
 * - After a commit that somebody waits for, `hints` says where to look. A hint may be lost; nothing depends on it.
 * - Moments are milliseconds since 1970. `now` is the caller's clock and only ever stamps rows; leases, rate windows
 *   and the age of a connection use the store's own clock.
 */
export interface Store {
  readonly clock: StoreClock
  readonly hints: Hints
  readonly admission: Admission
  readonly instances: Instances
  readonly connections: Connections
  readonly messages: Messages
  readonly events: Events
  readonly deliveries: Deliveries
  readonly leases: Leases
  readonly credentials: Credentials
  readonly numbers: Numbers
  readonly sandbox: SandboxStorage
  readonly phoneOrders: PhoneOrders
  readonly retention: Retention
  readonly statistics: Statistics
  readonly sessions: Sessions
  /** Writes a row and resolves when it is on the disk; throws `StoreUnavailable` otherwise. */
  ping(): Promise<void>
  /** Finishes the writes already accepted, then closes. Later calls throw `StoreUnavailable`. */
  close(): Promise<void>
}
