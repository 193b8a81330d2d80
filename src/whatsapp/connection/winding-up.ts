import type { Logger } from 'pino'
import type { StoredConnection } from '../../domain/connection/connection.ts'
import { type FailureCode, messageFailure } from '../../domain/message.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { Store } from '../../store/store.ts'
import { untilStored } from '../../store/until-stored.ts'
import { NO_CODES, type Status } from './status.ts'

/** At most this many messages fail in one commit. */
const BATCH_SIZE = 200

type Reason = Pick<StoredConnection, 'cause' | 'reason'>

export const LOGGED_OUT: Reason = { cause: 'logged_out_as_asked', reason: 'Logged out on request.' }
export const NOT_CONFIRMED: Reason = {
  cause: 'logout_unconfirmed',
  reason:
    'Logged out on request, but WhatsApp has not confirmed it. If the phone still shows this device under Linked devices, remove it there.',
}

interface WindingUpOptions {
  lease: Lease
  store: Pick<Store, 'credentials' | 'messages'>
  status: Status
  logger: Logger
  now: () => number
  signal: AbortSignal
}

/** Cleans up after a logout or deletion. After a kill at any step, the cleanup can be resumed. */
export class WindingUp {
  readonly #options: WindingUpOptions

  constructor(options: WindingUpOptions) {
    this.#options = options
  }

  /** Records the state first, so that no more messages are accepted. The caller settles the goal last. */
  async logOut(why: Reason, goalVersion: number | null): Promise<void> {
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

  /** The steps after the state is recorded. They must be complete before another number is linked. */
  async finishLogout(): Promise<void> {
    const { store, lease, signal } = this.#options
    await untilStored(() => store.credentials.clear(lease), signal)
    await this.failQueue('instance_logged_out')
  }

  /** Fails messages, also scheduled ones, that were accepted while the queue was being failed. */
  async failLeftOver(): Promise<void> {
    const { store, lease, signal } = this.#options
    const findFirst = () => store.messages.listQueued(lease.instanceId, 1, Number.MIN_SAFE_INTEGER)
    const [leftOver] = await untilStored(findFirst, signal)
    if (leftOver) await this.failQueue('instance_logged_out')
  }

  async failQueue(code: FailureCode): Promise<void> {
    const { store, lease, signal, now, logger } = this.#options
    const failStep = () => store.messages.recordQueueFailed(lease, messageFailure(code), now(), BATCH_SIZE)
    let count = 0
    for (let step = 1; step > 0; count += step) step = await untilStored(failStep, signal)
    if (count > 0) logger.info({ instanceId: lease.instanceId, code, count }, 'queue.failed')
  }
}
