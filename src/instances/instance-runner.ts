import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { InstanceId } from '../domain/ids.ts'
import type { ConnectionRecord } from '../store/connections/connections.ts'
import type { Lease } from '../store/leases/leases.ts'
import type { Store } from '../store/store.ts'
import type { Running } from './supervisor.ts'

/** How often the rows of a deleted instance are looked at, until nothing is queued or owed and they can go. */
const ERASE_EVERY_MS = 2_000
const ASK_WITHIN_MS = 500
/** Before an instance that could not be started is tried again. */
const START_AGAIN_MS = 5_000

/** Longer than any attempt takes: none that is in flight is made again by the next owner. */
const DRAIN_GRACE_MS = 11_000

/** What the runner needs of the WhatsApp driver. */
export interface Connection {
  /** Converges on the stored goal, and keeps looking whether it changed. */
  start(): Promise<void> | void
  /** It shows a code, or logs in for the first time after a phone has taken one. */
  readonly isLinking: boolean
  stop(options?: { logOut?: boolean }): Promise<void>
}

/** What the runner needs of the webhooks room. */
export interface Lanes {
  open(lease: Lease): void
  /** @param graceMs what is in flight after that is broken off */
  shut(instanceId: InstanceId, graceMs?: number): Promise<void>
}

export interface RunnerOptions {
  lease: Lease
  store: Pick<Store, 'connections' | 'instances'>
  lanes: Lanes
  /** Makes the link to WhatsApp, which is the real one or the sandbox, as the record's kind says. */
  connect(record: ConnectionRecord, lease: Lease, onLeaseLost: () => void): Promise<Connection>
  /** Nothing is left of the instance: what lives outside the store can go too. */
  onErased(instanceId: InstanceId): Promise<void>
  onLeaseLost(): void
  /** It was put down without its lease, although nobody deleted it. */
  onStoppedWithoutLease?(): void
  logger: Logger
}

/**
 * One instance on this node, for as long as its lease lasts: its connection and its lane. A deleted one is wound up:
 * the connection fails what is queued, the lane tells of it, then the rows go.
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
    this.#started = this.#start().catch(error => this.#giveUp(error))
  }

  get isLinking(): boolean {
    return this.#connection?.isLinking ?? false
  }

  /** A deleted instance's lease is no longer ours to write with: put it down, and take it up again to wind it up. */
  look(): void {
    if (this.#deleted || this.#stopped) return
    const { store, lease } = this.#options
    store.connections
      .find(lease.instanceId)
      .then(record => {
        if (record === null || record.deleted) this.#options.onLeaseLost()
      })
      .catch(error => this.#options.logger.warn({ err: error, instanceId: lease.instanceId }, 'instance.look_failed'))
  }

  async stop(leaseHeld: boolean): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    const { lanes, lease, store, onStoppedWithoutLease } = this.#options
    await this.#started
    const logOut = !leaseHeld && !this.#deleted && (await wasDeleted(store, lease.instanceId))
    if (!leaseHeld && !this.#deleted && !logOut) onStoppedWithoutLease?.()
    await Promise.all([this.#connection?.stop({ logOut }), lanes.shut(lease.instanceId)])
  }

  /** The connection goes on until the attempts in flight have ended, so that it is away as shortly as can be. */
  async drain(): Promise<void> {
    await this.#started
    await this.#options.lanes.shut(this.#options.lease.instanceId, DRAIN_GRACE_MS)
  }

  resume(): void {
    if (!this.#stopped) this.#options.lanes.open(this.#options.lease)
  }

  async #start(): Promise<void> {
    const { store, lease, lanes, connect, onLeaseLost } = this.#options
    const record = await store.connections.find(lease.instanceId)
    if (record === null || this.#stopped) return
    this.#deleted = record.deleted
    lanes.open(lease)
    this.#connection = await connect(record, lease, onLeaseLost)
    if (this.#stopped) return
    await this.#connection.start()
    if (this.#deleted) this.#eraseLater()
  }

  #eraseLater(): void {
    if (this.#stopped) return
    this.#timer = setTimeout(() => {
      this.#erase().catch(error => this.#giveUp(error))
    }, ERASE_EVERY_MS)
  }

  async #erase(): Promise<void> {
    const { store, lease, onErased, onLeaseLost, logger } = this.#options
    if (!(await store.instances.erase(lease))) return this.#eraseLater()
    await onErased(lease.instanceId)
    logger.info({ instanceId: lease.instanceId }, 'instance.erased')
    onLeaseLost()
  }

  #giveUp(error: unknown): void {
    this.#options.logger.error({ err: error, instanceId: this.#options.lease.instanceId }, 'instance.run_failed')
    if (!this.#stopped) this.#timer = setTimeout(() => this.#options.onLeaseLost(), START_AGAIN_MS)
  }
}

/**
 * When the store cannot say, nothing is logged out of WhatsApp: that could not be taken back. Nor is it waited for: the
 * instance may run elsewhere by now.
 */
async function wasDeleted(store: RunnerOptions['store'], instanceId: InstanceId): Promise<boolean> {
  const asked = store.connections.find(instanceId).then(
    record => record?.deleted === true,
    () => false,
  )
  return Promise.race([asked, sleep(ASK_WITHIN_MS, false, { ref: false })])
}
