import type { Logger } from 'pino'
import type { InstanceId } from '../domain/ids.ts'
import type { Hints } from '../store/hints.ts'
import type { Lease, Leases } from '../store/store.ts'

/** A third of a lease: two renewals may fail before it lapses. */
const RENEW_EVERY_MS = 5_000
/** Unrenewed for so long, this node lets go: 5 s before another one may take over. */
const LET_GO_AFTER_MS = 10_000
const RENEW_AGAIN_MS = 1_000
/** Instances taken in one step, so that a node that starts does not open thousands of sockets in one breath. */
const ACQUIRE_AT_ONCE = 50

/** An instance that this node runs. */
export interface Running {
  /** Something else is asked of it. */
  look(): void
  /** @param leaseHeld false: nothing may be written any more, only be put down */
  stop(leaseHeld: boolean): Promise<void>
}

export interface SupervisorOptions {
  leases: Leases
  hints: Hints
  /** This node's name, new at every boot. */
  owner: string
  run(lease: Lease, onLeaseLost: () => void): Running
  logger: Logger
  /** Milliseconds on a clock that never jumps. */
  monotonicNow?: () => number
}

/**
 * Which instances this node runs. It takes what is free or lapsed, renews all leases in one statement, and puts an
 * instance down as soon as its lease is gone; a node that cannot renew puts down everything before others may take over.
 */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #running = new Map<InstanceId, { lease: Lease; running: Running }>()
  /** Instances being put down: not taken again before that is done, so that no account ever has two sockets. */
  readonly #stopping = new Map<InstanceId, Promise<void>>()
  readonly #unsubscribe: () => void
  readonly #monotonicNow: () => number
  #renewedAt: number
  #hasRenewed = false
  #timer: NodeJS.Timeout | undefined
  #step: Promise<void> = Promise.resolve()
  #stepWanted = false
  #closed = false

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#monotonicNow = options.monotonicNow ?? (() => performance.now())
    this.#renewedAt = this.#monotonicNow()
    this.#unsubscribe = options.hints.on('goal', instanceId => {
      this.#running.get(instanceId)?.running.look()
      if (!this.#running.has(instanceId)) this.#wantStep()
    })
    this.#wantStep()
  }

  /** How many instances this node runs. */
  get size(): number {
    return this.#running.size
  }

  /** Whether this node's leases hold: otherwise it runs nothing, or is about to put down what it runs. */
  get isRenewed(): boolean {
    return this.#hasRenewed && !this.#closed && this.#monotonicNow() - this.#renewedAt < LET_GO_AFTER_MS
  }

  /** A write for the instance was refused by the fence: it is put down here, and taken up again if it is free. */
  lost(instanceId: InstanceId): void {
    this.#putDown(instanceId, false)
  }

  /** Puts every instance down and gives its lease up, so that another node can take over at once. */
  async close(): Promise<void> {
    this.#closed = true
    this.#unsubscribe()
    clearTimeout(this.#timer)
    await this.#step
    for (const instanceId of this.#running.keys()) this.#putDown(instanceId, true)
    await Promise.all(this.#stopping.values())
  }

  #wantStep(): void {
    if (this.#closed || this.#stepWanted) return
    this.#stepWanted = true
    this.#step = this.#step.then(() => this.#renewAndAcquire())
  }

  async #renewAndAcquire(): Promise<void> {
    this.#stepWanted = false
    if (this.#closed) return
    clearTimeout(this.#timer)
    const askedAt = this.#monotonicNow()
    let nextStepMs = RENEW_EVERY_MS
    try {
      await this.#renew()
      this.#renewedAt = askedAt
      this.#hasRenewed = true
      await this.#acquire()
    } catch (error) {
      nextStepMs = RENEW_AGAIN_MS
      this.#options.logger.warn({ err: error, unrenewedMs: this.#monotonicNow() - this.#renewedAt }, 'leases.unrenewed')
      if (this.#monotonicNow() - this.#renewedAt >= LET_GO_AFTER_MS) {
        for (const instanceId of this.#running.keys()) this.#putDown(instanceId, false)
      }
    }
    if (!this.#closed) this.#timer = setTimeout(() => this.#wantStep(), nextStepMs)
  }

  async #renew(): Promise<void> {
    const held = new Map(
      (await this.#options.leases.renew(this.#options.owner)).map(lease => [lease.instanceId, lease]),
    )
    for (const [instanceId, { lease }] of this.#running) {
      if (held.get(instanceId)?.epoch !== lease.epoch) this.#putDown(instanceId, false)
    }
    // A lease of ours that nobody runs: its acquisition's answer was lost on the way.
    for (const lease of held.values()) this.#start(lease)
  }

  async #acquire(): Promise<void> {
    for (;;) {
      const taken = await this.#options.leases.acquire(this.#options.owner, ACQUIRE_AT_ONCE)
      for (const lease of taken) this.#start(lease)
      if (taken.length < ACQUIRE_AT_ONCE || this.#closed) return
    }
  }

  #start(lease: Lease): void {
    if (this.#closed || this.#running.has(lease.instanceId) || this.#stopping.has(lease.instanceId)) return
    const running = this.#options.run(lease, () => {
      if (this.#running.get(lease.instanceId)?.lease === lease) this.#putDown(lease.instanceId, false)
    })
    this.#running.set(lease.instanceId, { lease, running })
  }

  #putDown(instanceId: InstanceId, leaseHeld: boolean): void {
    const entry = this.#running.get(instanceId)
    if (!entry) return
    this.#running.delete(instanceId)
    const stopped = entry.running
      .stop(leaseHeld)
      .then(() => (leaseHeld ? this.#options.leases.release(entry.lease) : undefined))
      .catch(error => this.#options.logger.error({ err: error, instanceId }, 'instance.stop_failed'))
      .finally(() => {
        this.#stopping.delete(instanceId)
        this.#wantStep()
      })
    this.#stopping.set(instanceId, stopped)
  }
}
