import type { Logger } from 'pino'
import type { StoredConnection } from '../../domain/connection.ts'
import type { ConnectionRecord, Connections } from '../../store/connections/connections.ts'
import type { Lease } from '../../store/leases/leases.ts'
import { untilStored } from '../../store/until-stored.ts'

type Change = Parameters<Connections['record']>[1]

/** What every state but `linking` shows. */
export const NO_CODES = { qr: null, qrExpiresAt: null, pairingCode: null, retryAt: null } as const

export interface StatusOptions {
  lease: Lease
  connections: Connections
  /** Every reason says so. */
  simulated: boolean
  logger: Logger
  now: () => number
  /** A store that is away is waited for until this is aborted. */
  signal: AbortSignal
}

/** The connection as the world sees it, and what the world wants of it. */
export class Status {
  readonly #options: StatusOptions
  /** As told last; null before. */
  #state: StoredConnection['state'] | null = null

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
    const told = change.reason === undefined ? change : { ...change, reason: this.#say(change.reason) }
    await untilStored(() => connections.record(lease, told, now()), signal)
    const { state, cause, reason } = told
    if (state) logger.info({ instanceId: lease.instanceId, state, cause, reason }, 'connection.changed')
  }

  /** The wish with this version is seen to; a newer one stands. */
  async settleGoal(goal: 'idle' | 'logged_out', goalVersion: number | null, change: Change = {}): Promise<void> {
    await this.record({ ...change, goal, ...(goalVersion !== null && { ifGoalVersion: goalVersion }) })
  }

  #say(reason: string): string {
    return this.#options.simulated ? `${reason} (WhatsApp is simulated.)` : reason
  }
}
