import type { Logger } from 'pino'
import type { StoredConnection } from '../../domain/connection.ts'
import { type FailureCode, messageFailure } from '../../domain/message.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { Store } from '../../store/store.ts'
import { untilStored } from '../../store/until-stored.ts'
import { NO_CODES, type Status } from './status.ts'

/** Messages failed in one commit. */
const QUEUE_STEP = 200

export interface WindingUpOptions {
  lease: Lease
  store: Pick<Store, 'credentials' | 'messages'>
  status: Status
  logger: Logger
  now: () => number
  signal: AbortSignal
}

/** What is left to do when an account is gone, in an order that a kill at any step leaves to be taken up again. */
export class WindingUp {
  readonly #options: WindingUpOptions

  constructor(options: WindingUpOptions) {
    this.#options = options
  }

  /** First the state, so that nothing more is accepted; the caller settles the goal last. */
  async logOut(why: Pick<StoredConnection, 'cause' | 'reason'>, goalVersion: number | null): Promise<void> {
    const { status } = this.#options
    await status.settleGoal('logged_out', goalVersion, {
      ...NO_CODES,
      state: 'logged_out',
      ...why,
      phone: null,
      restriction: null,
    })
    await this.finishLogout()
  }

  /** The rest, where only the state is known to be recorded: no other number is linked before. */
  async finishLogout(): Promise<void> {
    const { store, lease, signal } = this.#options
    await untilStored(() => store.credentials.clear(lease), signal)
    await this.failQueue('instance_logged_out')
  }

  /** The same for a message whose acceptance was committed after the queue had failed. */
  async failLeftOver(): Promise<void> {
    const { store, lease, signal } = this.#options
    const [leftOver] = await untilStored(() => store.messages.listQueued(lease.instanceId, 1), signal)
    if (leftOver) await this.failQueue('instance_logged_out')
  }

  async failQueue(code: FailureCode): Promise<void> {
    const { store, lease, signal, now, logger } = this.#options
    const failStep = () => store.messages.recordQueueFailed(lease, messageFailure(code), now(), QUEUE_STEP)
    let count = 0
    for (let step = 1; step > 0; count += step) step = await untilStored(failStep, signal)
    if (count > 0) logger.info({ instanceId: lease.instanceId, code, count }, 'queue.failed')
  }
}
