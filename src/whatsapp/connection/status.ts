import type { Logger } from 'pino'
import { currentState, type StoredConnection } from '../../domain/connection/connection.ts'
import type { ConnectionRecord, Connections } from '../../store/connections/connections.ts'
import type { Lease } from '../../store/leases/leases.ts'
import { untilStored } from '../../store/until-stored.ts'

type Change = Parameters<Connections['record']>[1]

/** Clears the codes of a linking and the time of the next attempt. */
export const NO_CODES = { qr: null, qrExpiresAt: null, pairingCode: null, passkey: null, retryAt: null } as const

export const ASKING = { cause: 'asking_for_code', reason: 'Asking WhatsApp for a code.' } as const

export function loggingIn(isFirstLogin: boolean): Pick<StoredConnection, 'state' | 'cause' | 'reason'> {
  return isFirstLogin
    ? { state: 'connecting', cause: 'first_login', reason: 'Linked. Logging in for the first time.' }
    : { state: 'reconnecting', cause: 'logging_in', reason: 'Connecting to WhatsApp.' }
}

interface StatusOptions {
  lease: Lease
  connections: Connections
  /** If true, every reason says that WhatsApp is simulated. */
  simulated: boolean
  /** Called when `isLinking` may have changed. */
  onLinking?: ((isLinking: boolean) => void) | undefined
  logger: Logger
  now: () => number
  /** Ends the retries while the store is unavailable. */
  signal: AbortSignal
}

/** States in which no login with the current credentials has been recorded yet. */
export const NEVER_CONNECTED: ReadonlySet<StoredConnection['state']> = new Set([
  'unlinked',
  'linking',
  'connecting',
  'logged_out',
])

/** Reads and records the connection's row: its state, reason and goal. */
export class Status {
  readonly #options: StatusOptions
  /** Null until a state is recorded. */
  #state: StoredConnection['state'] | null = null
  #isAwayReported = false

  constructor(options: StatusOptions) {
    this.#options = options
  }

  get isLinking(): boolean {
    return this.#state === 'linking' || this.#state === 'connecting'
  }

  find(): Promise<ConnectionRecord | null> {
    const { connections, lease, signal } = this.#options
    return untilStored(() => connections.find(lease.instanceId), signal)
  }

  async record(change: Change): Promise<void> {
    const { connections, lease, signal, now, logger } = this.#options
    this.#state = change.state ?? this.#state
    if (change.state) this.#options.onLinking?.(this.isLinking)
    const described = change.reason === undefined ? change : { ...change, reason: this.#describe(change.reason) }
    await untilStored(() => connections.record(lease, described, now()), signal)
    const { state, cause, reason } = described
    if (state) logger.info({ instanceId: lease.instanceId, state, cause, reason }, 'connection.changed')
  }

  /** Reports that the instance is disconnected, from five minutes after its last connection. */
  async reportAway(record: ConnectionRecord): Promise<void> {
    const { connections, lease, signal, now } = this.#options
    const isAway = currentState(record, true, now()) === 'disconnected'
    if (!isAway) this.#isAwayReported = false
    else if (!this.#isAwayReported)
      this.#isAwayReported = await untilStored(() => connections.report(lease, now()), signal)
  }

  /** Replaces the goal, unless its version has changed since. @param goalVersion null: unknown, so the goal stays */
  async settleGoal(goal: 'idle' | 'logged_out', goalVersion: number | null, change: Change = {}): Promise<void> {
    await this.record({ ...change, ...(goalVersion !== null && { goal, ifGoalVersion: goalVersion }) })
  }

  #describe(reason: string): string {
    return this.#options.simulated ? `${reason} (WhatsApp is simulated.)` : reason
  }
}
