import type { Logger } from 'pino'
import type { InstanceId } from '../domain/ids.ts'
import { INSTANCE_KINDS, type InstanceKind } from '../domain/instance.ts'
import type { Hints } from '../store/hints.ts'
import type { HeldLease, Lease, Leases } from '../store/leases/leases.ts'

/** A third of a lease: two renewals may fail before it lapses. */
const RENEW_EVERY_MS = 5_000
/** Unrenewed for so long, this node lets go: 5 s before another one may take over. */
const LET_GO_AFTER_MS = 10_000
const RENEW_AGAIN_MS = 1_000
const AFTER_LAPSE_MS = 50
/** What a node has beyond its share it hands over so many at a time, so that few are away at any moment. */
const HANDED_OVER_AT_ONCE = 10
/** Instances taken in one step, so that a node that starts does not open thousands of sockets in one breath. */
const ACQUIRE_AT_ONCE = 50

/** An instance that this node runs. */
export interface Running {
  /** A phone is about to link it, by a code that would be worthless elsewhere. */
  readonly isLinking: boolean
  /** Something else is asked of it. */
  look(): void
  /** @param leaseHeld false: nothing may be written any more, only be put down */
  stop(leaseHeld: boolean): Promise<void>
  /** Starts nothing more whose end the next owner would have to wait for; resolves when all of that has ended. */
  drain(): Promise<void>
  /** It was drained, and stays. */
  resume(): void
}

export interface SupervisorOptions {
  leases: Leases
  hints: Hints
  /** This node's name, new at every boot. */
  owner: string
  /** The kinds of instances that this node can run; by default all. */
  runs?: readonly InstanceKind[]
  run(lease: Lease, onLeaseLost: () => void): Running
  logger: Logger
  /** Milliseconds on a clock that never jumps. */
  monotonicNow?: () => number
}

/**
 * Which instances this node runs. It takes its share of what is free or lapsed, renews all leases in one statement, and
 * puts an instance down as soon as its lease is gone; a node that cannot renew puts down everything before others may take
 * over. What it has beyond its share it hands over, once others are there to take it, but for what is being linked.
 */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #running = new Map<InstanceId, { lease: HeldLease; running: Running }>()
  /** Instances that are drained before they are handed over. */
  readonly #leaving = new Set<InstanceId>()
  /** Instances being put down: not taken again before that is done, so that no account ever has two sockets. */
  readonly #stopping = new Map<InstanceId, { kind: InstanceKind; done: Promise<void> }>()
  readonly #unsubscribe: (() => void)[]
  readonly #monotonicNow: () => number
  readonly #runs: readonly InstanceKind[]
  #renewedAt: number
  #hasRenewed = false
  #timer: NodeJS.Timeout | undefined
  /** Fires whatever the store is doing, which may not answer for longer than a lease lasts. */
  #letGoTimer: NodeJS.Timeout | undefined
  #nodes = 0
  #step: Promise<void> = Promise.resolve()
  #stepWanted = false
  #closed = false

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#monotonicNow = options.monotonicNow ?? (() => performance.now())
    this.#runs = options.runs ?? INSTANCE_KINDS
    this.#renewedAt = this.#monotonicNow()
    this.#unsubscribe = [
      options.hints.on('goal', instanceId => this.#running.get(instanceId)?.running.look()),
      options.hints.on('free', () => this.#wantStep()),
    ]
    this.#wantStep()
  }

  /** How many instances this node runs. */
  get size(): number {
    return this.#running.size
  }

  /** Whether this node's leases hold: otherwise it runs nothing, or is about to put down what it runs. */
  get isRenewed(): boolean {
    return !this.#closed && this.mayAct
  }

  /**
   * Whether the leases of what runs here cannot have gone to another node. To be asked before each send and each post: a
   * process that was stopped for a while finds its timers and sockets ready before it has learned of anything.
   */
  get mayAct(): boolean {
    return this.#hasRenewed && this.#monotonicNow() - this.#renewedAt < LET_GO_AFTER_MS
  }

  /** A write for the instance was refused by the fence: it is put down here, and taken up again if it is free. */
  lost(instanceId: InstanceId): void {
    this.#putDown(instanceId, false)
  }

  /** Puts every instance down and gives its lease up, so that another node can take over at once. */
  async close(): Promise<void> {
    this.#closed = true
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    clearTimeout(this.#timer)
    await this.#step
    const { leases, owner, logger } = this.#options
    await leases.leave(owner).catch(error => logger.warn({ err: error }, 'leases.leave_failed'))
    for (const instanceId of this.#running.keys()) this.#putDown(instanceId, true)
    await Promise.all([...this.#stopping.values()].map(({ done }) => done))
    clearTimeout(this.#letGoTimer)
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
      await this.#renew(askedAt)
      nextStepMs = await this.#settleShare()
    } catch (error) {
      nextStepMs = RENEW_AGAIN_MS
      this.#options.logger.warn({ err: error, unrenewedMs: this.#monotonicNow() - this.#renewedAt }, 'leases.unrenewed')
    }
    if (!this.#closed) this.#timer = setTimeout(() => this.#wantStep(), nextStepMs)
  }

  async #renew(askedAt: number): Promise<void> {
    const held = new Map(
      (await this.#options.leases.renew(this.#options.owner)).map(lease => [lease.instanceId, lease]),
    )
    this.#renewedAt = askedAt
    this.#hasRenewed = true
    this.#letGoLater()
    for (const [instanceId, { lease }] of this.#running) {
      if (held.get(instanceId)?.epoch !== lease.epoch) this.#putDown(instanceId, false)
    }
    // A lease of ours that nobody runs: its acquisition's answer was lost on the way.
    for (const lease of held.values()) this.#start(lease)
  }

  #letGoLater(): void {
    clearTimeout(this.#letGoTimer)
    const leftMs = this.#renewedAt + LET_GO_AFTER_MS - this.#monotonicNow()
    this.#letGoTimer = setTimeout(() => {
      if (this.#running.size > 0) this.#options.logger.warn({ instances: this.#running.size }, 'leases.let_go')
      for (const instanceId of this.#running.keys()) this.#putDown(instanceId, false)
    }, leftMs)
  }

  /** @returns when to look again: a lease that nobody renews any more is taken the moment it lapses */
  async #settleShare(): Promise<number> {
    const { leases, owner } = this.#options
    const { shares, leftOver, nodes, nextLapseMs } = await leases.attend(owner, this.#runs)
    if (nodes !== this.#nodes)
      this.#options.logger.info({ nodes, shares, running: this.#running.size }, 'leases.shared')
    this.#nodes = nodes
    for (const kind of this.#runs) await this.#takeShare(kind, shares[kind])
    await this.#take(await leases.acquireLeftOver(owner, ACQUIRE_AT_ONCE, leftOver))
    this.#handOver(INSTANCE_KINDS.flatMap(kind => this.#beyondShare(kind, shares[kind])))
    return Math.min(RENEW_EVERY_MS, (nextLapseMs ?? RENEW_EVERY_MS) + AFTER_LAPSE_MS)
  }

  async #takeShare(kind: InstanceKind, share: number): Promise<void> {
    const { leases, owner } = this.#options
    for (let missing = share - this.#held(kind); missing > 0 && !this.#closed; missing = share - this.#held(kind)) {
      const limit = Math.min(missing, ACQUIRE_AT_ONCE)
      if ((await this.#take(await leases.acquire(owner, limit, [kind]))) < limit) return
    }
  }

  async #take(taken: readonly HeldLease[]): Promise<number> {
    for (const lease of taken) {
      // Told to close while it asked: others need not wait for it to lapse.
      if (this.#closed) await this.#options.leases.release(lease)
      else this.#start(lease)
    }
    return taken.length
  }

  /** Leases that this node holds: those of instances being put down count until they are given up. */
  #held(kind: InstanceKind): number {
    const running = [...this.#running.values()].filter(({ lease }) => lease.kind === kind)
    return running.length + [...this.#stopping.values()].filter(stopping => stopping.kind === kind).length
  }

  /** The youngest: what has been here for long stays. */
  #beyondShare(kind: InstanceKind, share: number): [InstanceId, Running][] {
    const candidates = [...this.#running].filter(([, { lease, running }]) => lease.kind === kind && !running.isLinking)
    const youngest = candidates.reverse().slice(0, Math.max(0, this.#held(kind) - share))
    return youngest.map(([instanceId, { running }]) => [instanceId, running])
  }

  #handOver(excess: readonly [InstanceId, Running][]): void {
    if (this.#leaving.size > 0 || this.#stopping.size > 0) return
    for (const [instanceId, running] of excess.slice(0, HANDED_OVER_AT_ONCE)) {
      this.#leaving.add(instanceId)
      running
        .drain()
        .catch(error => this.#options.logger.error({ err: error, instanceId }, 'instance.drain_failed'))
        .finally(() => {
          this.#leaving.delete(instanceId)
          if (this.#running.get(instanceId)?.running !== running) return
          if (running.isLinking) running.resume()
          else this.#putDown(instanceId, true)
        })
    }
  }

  #start(lease: HeldLease): void {
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
    const done = entry.running
      .stop(leaseHeld)
      .then(() => (leaseHeld ? this.#options.leases.release(entry.lease) : undefined))
      .catch(error => this.#options.logger.error({ err: error, instanceId }, 'instance.stop_failed'))
      .finally(() => {
        this.#stopping.delete(instanceId)
        this.#wantStep()
      })
    this.#stopping.set(instanceId, { kind: entry.lease.kind, done })
  }
}
