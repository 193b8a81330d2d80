import type { Logger } from 'pino'
import type { InstanceProxy } from '../../outbound/proxy/instance-proxy.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { Store } from '../../store/store.ts'
import type { DirectoryKeeper } from '../receiving/directory-keeper.ts'
import type { Downloads } from '../receiving/downloads.ts'
import type { IncomingRecorder } from '../receiving/record.ts'
import type { Sender } from '../sending/sender.ts'
import type { LoggedOut, NextStep } from './after-close.ts'
import type { ConnectionPacing } from './connection-pacing.ts'
import type { ConnectionNetwork, ConnectionSettings } from './connection-settings.ts'
import type { HealthLog } from './health-log.ts'
import type { RestrictionWatch } from './restriction-watch.ts'
import type { Status } from './status.ts'
import type { WindingUp } from './winding-up.ts'

export interface LinkManagerOptions {
  lease: Lease
  store: Pick<Store, 'connections' | 'messages' | 'credentials'>
  openProxy(url: string, instanceId: string): InstanceProxy
  network: ConnectionNetwork
  settings: ConnectionSettings
  mayAct?: () => boolean
  pacing: ConnectionPacing
  status: Status
  windingUp: WindingUp
  /** The sender of the account that is linked now. */
  sender: Sender
  recorder: IncomingRecorder
  downloads: Downloads
  directory: DirectoryKeeper
  restriction: RestrictionWatch
  health: HealthLog
  logger: Logger
  now: () => number
  signal: AbortSignal
  /** Runs `work` after all earlier steps. */
  runStep(work: () => Promise<void>): void
  onFailed(error: unknown): void
  /** The link has ended, and no other link is opened until somebody connects again. */
  onRest(next: Extract<NextStep, { kind: 'rest' }>): Promise<void>
  /** The phone has removed this device. */
  onLoggedOut(why: LoggedOut): Promise<void>
}
