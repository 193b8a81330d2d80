import type { Logger } from 'pino'
import type { InstanceId } from '../domain/ids.ts'
import { waitAtMost, withDeadline } from '../kit/deadline.ts'
import type { ConnectionRecord } from '../store/connections/connections.ts'
import type { Lease } from '../store/leases/leases.ts'
import type { Store } from '../store/store.ts'
import type { RunEnds, Running } from './supervisor.ts'

/** How often a deleted instance is checked. Its rows are erased when no message is queued and no delivery is pending. */
const ERASE_EVERY_MS = 2_000
const QUERY_TIMEOUT_MS = 500
/** The pause before an instance that could not be started is started again. */
const RESTART_AFTER_MS = 5_000

/**
 * The longest time that a planned handover waits for an attempt. None of the instance's endpoints gets an event meanwhile, so a
 * long `WEBHOOK_TIMEOUT_MS` must not hold them up for minutes.
 */
const LONGEST_AWAITED_MS = 60_000
/** The time to record an attempt that has just ended. */
const RECORD_MS = 1_000
/** The longest time that a connection takes to stop. */
const CONNECTION_STOPS_WITHIN_MS = 2_500

/** The part of the WhatsApp driver that the runner needs. */
export interface Connection {
  /** Brings the connection to the stored goal, and follows changes of the goal. */
  start(): Promise<void> | void
  /** Whether a code is shown, or the first login after a scan is running. */
  readonly isLinking: boolean
  /** Sends no more frames, except for a logout by `stop`. */
  revoke(): void
  stop(options?: { logOut?: boolean }): Promise<void>
}

/** The part of the webhooks module that the runner needs. */
interface Lanes {
  open(lease: Lease): void
  /** @param graceMs after this time, attempts in flight are aborted */
  shut(instanceId: InstanceId, graceMs?: number): Promise<void>
}

export interface RunnerOptions extends RunEnds {
  lease: Lease
  store: Pick<Store, 'connections' | 'instances'>
  lanes: Lanes
  /** The longest time of one webhook attempt. */
  webhookTimeoutMs: number
  /** Creates the connection, to WhatsApp or the sandbox depending on the record's kind. */
  connect(record: ConnectionRecord, lease: Lease, ends: RunEnds): Promise<Connection>
  /** Called when the instance is erased from the store, to erase what exists outside it. */
  onErased(instanceId: InstanceId): Promise<void>
  /** Called when the instance was stopped without its lease, although it is not deleted. */
  onStoppedWithoutLease?(): void
  logger: Logger
}

/**
 * Runs the connection and the lanes of one instance while this node holds its lease. For a deleted instance, the connection
 * fails the queued messages, the lanes post the events of these failures, and then the rows are erased.
 */
export class InstanceRunner implements Running {
  readonly #options: RunnerOptions
  readonly #started: Promise<void>
  #connection: Connection | undefined
  #timer: NodeJS.Timeout | undefined
  #stopped = false
  #deleted = false

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#started = this.#start().catch(error => this.#failed(error))
  }

  get isLinking(): boolean {
    return this.#connection?.isLinking ?? false
  }

  /** Restarts the instance if it was deleted: its old lease is no longer valid, and a deleted instance runs differently. */
  onGoalChanged(): void {
    if (this.#deleted || this.#stopped) return
    const { store, lease } = this.#options
    store.connections
      .find(lease.instanceId)
      .then(record => {
        if (record === null || record.deleted) this.#options.onLeaseLost()
      })
      .catch(error => this.#options.logger.warn({ err: error, instanceId: lease.instanceId }, 'instance.check_failed'))
  }

  revoke(): void {
    this.#connection?.revoke()
    void this.#options.lanes.shut(this.#options.lease.instanceId)
  }

  async stop(leaseHeld: boolean, graceMs?: number): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    const { lanes, lease, store, onStoppedWithoutLease } = this.#options
    await this.#started
    const logOut = !leaseHeld && !this.#deleted && (await wasDeleted(store, lease.instanceId))
    if (!leaseHeld && !this.#deleted && !logOut) onStoppedWithoutLease?.()
    const shut = lanes.shut(lease.instanceId, graceMs)
    // While attempts end, the connection stays up for as long as both can end in time.
    if (leaseHeld && graceMs !== undefined) await waitAtMost(Math.max(graceMs - CONNECTION_STOPS_WITHIN_MS, 0), shut)
    await Promise.all([this.#connection?.stop({ logOut }), shut])
  }

  /**
   * Ends the webhook attempts only. The connection stays up until `stop`, to keep its interruption short. Attempts of up to a
   * minute are awaited and recorded, so that the next owner does not repeat them.
   */
  async drain(): Promise<void> {
    await this.#started
    const { lanes, lease, webhookTimeoutMs } = this.#options
    await lanes.shut(lease.instanceId, Math.min(webhookTimeoutMs, LONGEST_AWAITED_MS) + RECORD_MS)
  }

  resume(): void {
    if (!this.#stopped) this.#options.lanes.open(this.#options.lease)
  }

  async #start(): Promise<void> {
    const { store, lease, lanes, connect, onLeaseLost, onCrashed } = this.#options
    const record = await store.connections.find(lease.instanceId)
    if (record === null || this.#stopped) return
    this.#deleted = record.deleted
    lanes.open(lease)
    this.#connection = await connect(record, lease, { onLeaseLost, onCrashed })
    if (this.#stopped) return
    await this.#connection.start()
    if (this.#deleted) this.#eraseLater()
  }

  #eraseLater(): void {
    if (this.#stopped) return
    this.#timer = setTimeout(() => {
      this.#erase().catch(error => this.#failed(error))
    }, ERASE_EVERY_MS)
  }

  async #erase(): Promise<void> {
    const { store, lease, onErased, onLeaseLost, logger } = this.#options
    if (!(await store.instances.erase(lease))) return this.#eraseLater()
    await onErased(lease.instanceId)
    logger.info({ instanceId: lease.instanceId }, 'instance.erased')
    onLeaseLost()
  }

  #failed(error: unknown): void {
    this.#options.logger.error({ err: error, instanceId: this.#options.lease.instanceId }, 'instance.run_failed')
    if (!this.#stopped) this.#timer = setTimeout(() => this.#options.onLeaseLost(), RESTART_AFTER_MS)
  }
}

/**
 * False if the store does not answer in time, because a logout from WhatsApp cannot be undone. The wait is short, because
 * the instance may already run on another node.
 */
function wasDeleted(store: RunnerOptions['store'], instanceId: InstanceId): Promise<boolean> {
  return withDeadline(QUERY_TIMEOUT_MS, store.connections.find(instanceId)).then(
    record => record?.deleted === true,
    () => false,
  )
}
