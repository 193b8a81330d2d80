import type { Logger } from 'pino'
import type { InstanceId } from '../domain/ids.ts'
import { INSTANCE_KINDS, type InstanceKind } from '../domain/instance.ts'
import type { Hints } from '../store/hints.ts'
import type { Attendance, HeldLease, Lease, Leases } from '../store/leases/leases.ts'
import { type Moment, type Renewal, VALID_FOR_MS } from '../store/leases/renewal.ts'
import { type ComparedSettings, findDifferences } from './settings-differences.ts'

/** A third of a lease: two renewals may fail before it lapses. */
const RENEW_EVERY_MS = 5_000
const RENEW_RETRY_MS = 1_000
const AFTER_LAPSE_MS = 50
/** At most this many instances beyond the share drain at the same time, so that few are interrupted together. */
const HAND_OVER_BATCH = 10
/** The most leases that one write acquires. */
const ACQUIRE_BATCH = 50
/** How long webhook attempts in flight may delay the restart of an instance whose thread died. */
const CRASH_GRACE_MS = 1_000

/** An instance that this node runs. */
export interface Running {
  /** Whether a phone may be scanning its code, which would be invalid on another node. */
  readonly isLinking: boolean
  /** The goal of its connection may have changed. */
  onGoalChanged(): void
  /** Its lease is lost: from now on it sends nothing, and it still has to be stopped. */
  revoke(): void
  /** @param leaseHeld if false, the fence rejects every write @param graceMs after this time, attempts in flight are aborted */
  stop(leaseHeld: boolean, graceMs?: number): Promise<void>
  /** Starts no more webhook attempts. Resolves when those in flight have ended. */
  drain(): Promise<void>
  /** Undoes `drain`: the instance stays on this node. */
  resume(): void
}

/** How the run of an instance ends other than by `stop`. The supervisor then stops it. */
export interface RunEnds {
  /** A write was refused by the fence. The instance is started again if its lease is free. */
  onLeaseLost(): void
  /** The thread of its connection died. The lease is released, so that the instance starts again under a new epoch. */
  onCrashed(): void
}

interface SupervisorOptions {
  leases: Leases
  hints: Hints
  /** This node's name, new at every boot. */
  owner: string
  /** The kinds of instances that this node can run. Default: all. */
  runs?: readonly InstanceKind[]
  /** The settings that all nodes must share. A warning names each node whose settings differ. */
  settings?: ComparedSettings
  run(lease: Lease, ends: RunEnds): Running
  /** Called after each renewal, with the moment at which it began. */
  onRenewed?(startedAt: Moment): void
  /** The supervisor records each renewal of the leases here. */
  renewal: Renewal
  logger: Logger
}

interface Entry {
  lease: HeldLease
  running: Running
}

/**
 * Decides which instances this node runs:
 *
 * - It acquires its share of the instances without an owner or with a lapsed lease.
 * - It renews all its leases in one statement, and stops an instance whose lease is lost.
 * - If it cannot renew, it stops all instances before another node may take over.
 * - It hands over the instances beyond its share, except those that are being linked.
 */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #running = new Map<InstanceId, Entry>()
  /** Settings of other nodes that differ and were logged. */
  #differences: ReadonlySet<string> = new Set()
  /** Instances that drain before they are handed over. */
  readonly #leaving = new Set<InstanceId>()
  /** Instances that are stopping. They start again only after that, because an account must not have two sockets. */
  readonly #stopping = new Map<InstanceId, Entry & { done: Promise<void> }>()
  /**
   * The epochs under which instances were stopped, until their leases are known to be released. An epoch is never started
   * twice: a write of its first run may still be waiting, and the fence would let it pass.
   */
  readonly #endedEpochs = new Map<InstanceId, number>()
  readonly #unsubscribe: (() => void)[]
  readonly #renewal: Renewal
  readonly #runs: readonly InstanceKind[]
  #renewsEarly = false
  #timer: NodeJS.Timeout | undefined
  /** Independent of the store, which may not answer for longer than a lease lasts. */
  #unrenewedTimer: NodeJS.Timeout | undefined
  #nodes = 0
  #step: Promise<void> = Promise.resolve()
  #stepRequested = false
  #closed = false

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#renewal = options.renewal
    this.#renewal.onExpired = () => this.#renewEarly()
    this.#runs = options.runs ?? INSTANCE_KINDS
    this.#unsubscribe = [
      options.hints.on('goal', instanceId => this.#running.get(instanceId)?.running.onGoalChanged()),
      options.hints.on('free', () => this.#requestStep()),
    ]
    this.#requestStep()
  }

  get size(): number {
    return this.#running.size
  }

  /** Whether this node's leases are valid. Otherwise it runs no instance or is about to stop them. */
  get isRenewed(): boolean {
    return !this.#closed && this.#renewal.mayAct()
  }

  /** The fence rejected a write. Stops the instance; it is started again if its lease is free. */
  onLeaseLost(instanceId: InstanceId): void {
    this.#stop(instanceId, false)
  }

  /**
   * Stops every instance and releases its lease, so that another node can take over immediately.
   * @param graceMs after this time, webhook attempts in flight are aborted
   */
  async close(graceMs: number): Promise<void> {
    const graceEndsAt = performance.now() + graceMs
    this.#closed = true
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    clearTimeout(this.#timer)
    await this.#step
    const { leases, owner, logger } = this.#options
    await leases.leave(owner).catch(error => logger.warn({ err: error }, 'leases.leave_failed'))
    const leftMs = Math.max(0, graceEndsAt - performance.now())
    for (const instanceId of this.#running.keys()) this.#stop(instanceId, true, leftMs)
    await Promise.all([...this.#stopping.values()].map(({ done }) => done))
    clearTimeout(this.#unrenewedTimer)
  }

  /** Requests one early renewal. If it fails, the timer causes the next one. */
  #renewEarly(): void {
    if (this.#renewal.startedAt === null || this.#renewsEarly) return
    this.#renewsEarly = true
    this.#requestStep()
  }

  #requestStep(): void {
    if (this.#closed || this.#stepRequested) return
    this.#stepRequested = true
    this.#step = this.#step.then(() => this.#renewAndAcquire())
  }

  async #renewAndAcquire(): Promise<void> {
    this.#stepRequested = false
    if (this.#closed) return
    clearTimeout(this.#timer)
    let nextStepMs = RENEW_EVERY_MS
    try {
      await this.#renew()
      nextStepMs = await this.#settleShare()
    } catch (error) {
      nextStepMs = RENEW_RETRY_MS
      this.#options.logger.warn({ err: error, unrenewedMs: this.#renewal.ageMs }, 'leases.unrenewed')
    }
    if (!this.#closed) this.#timer = setTimeout(() => this.#requestStep(), nextStepMs)
  }

  async #renew(): Promise<void> {
    const startedAt = this.#renewal.present
    const held = new Map(
      (await this.#options.leases.renew(this.#options.owner)).map(lease => [lease.instanceId, lease]),
    )
    if (this.#renewal.ageMs >= VALID_FOR_MS) this.#revokeUnless(held)
    this.#renewal.startedAt = startedAt
    this.#renewsEarly = false
    this.#options.onRenewed?.(startedAt)
    this.#stopAllUnlessRenewed()
    for (const [instanceId, { lease }] of this.#running) {
      if (held.get(instanceId)?.epoch !== lease.epoch) this.#stop(instanceId, false)
    }
    const ended: HeldLease[] = []
    // Includes leases whose acquisition succeeded although its answer was lost.
    for (const lease of held.values()) {
      if (this.#endedEpochs.get(lease.instanceId) === lease.epoch) ended.push(lease)
      else this.#start(lease)
    }
    // At the same time, so that they share commits: after an outage of the store, all instances may have been stopped.
    await Promise.all(ended.map(lease => this.#releaseEnded(lease)))
    for (const instanceId of this.#endedEpochs.keys()) if (!held.has(instanceId)) this.#endedEpochs.delete(instanceId)
  }

  /**
   * After a pause of the process, other nodes may run this node's instances. Those are revoked before this node may act
   * again, because it takes a while to stop them.
   */
  #revokeUnless(held: ReadonlyMap<InstanceId, HeldLease>): void {
    for (const { lease, running } of [...this.#running.values(), ...this.#stopping.values()]) {
      if (held.get(lease.instanceId)?.epoch !== lease.epoch) running.revoke()
    }
  }

  #stopAllUnlessRenewed(): void {
    clearTimeout(this.#unrenewedTimer)
    this.#unrenewedTimer = setTimeout(() => {
      if (this.#running.size > 0) this.#options.logger.warn({ instances: this.#running.size }, 'leases.expired')
      for (const instanceId of this.#running.keys()) this.#stop(instanceId, false)
    }, this.#renewal.validForMs)
  }

  /** @returns milliseconds to the next step, which is early enough to acquire another node's lease as soon as it lapses */
  async #settleShare(): Promise<number> {
    const { leases, owner, settings = {} } = this.#options
    const attendance = await leases.attend(owner, this.#runs, JSON.stringify(settings))
    const { shares, leftOver, nodes, otherSettings, nextLapseMs } = attendance
    this.#warnOfDifferences(settings, otherSettings)
    if (nodes !== this.#nodes)
      this.#options.logger.info({ nodes, shares, running: this.#running.size }, 'leases.shared')
    this.#nodes = nodes
    for (const kind of this.#runs) await this.#takeShare(kind, shares[kind])
    await this.#take(await leases.acquireLeftOver(owner, ACQUIRE_BATCH, leftOver))
    this.#handOver(INSTANCE_KINDS.flatMap(kind => this.#beyondShare(kind, shares[kind])))
    return Math.min(RENEW_EVERY_MS, (nextLapseMs ?? RENEW_EVERY_MS) + AFTER_LAPSE_MS)
  }

  /** Logs each difference once. During a rolling change of a setting, nodes differ for a while. */
  #warnOfDifferences(settings: ComparedSettings, others: Attendance['otherSettings']): void {
    const found = findDifferences(settings, others)
    const lines = new Map(found.map(difference => [JSON.stringify(difference), difference]))
    for (const [line, difference] of lines)
      if (!this.#differences.has(line)) this.#options.logger.warn(difference, 'settings.differ')
    this.#differences = new Set(lines.keys())
  }

  async #takeShare(kind: InstanceKind, share: number): Promise<void> {
    const { leases, owner } = this.#options
    for (let missing = share - this.#held(kind); missing > 0 && !this.#closed; missing = share - this.#held(kind)) {
      const limit = Math.min(missing, ACQUIRE_BATCH)
      if ((await this.#take(await leases.acquire(owner, limit, [kind]))) < limit) return
    }
  }

  async #take(taken: readonly HeldLease[]): Promise<number> {
    for (const lease of taken) {
      // Closed in the meantime. The release lets another node take over without waiting for the lease to lapse.
      if (this.#closed) await this.#options.leases.release(lease)
      else this.#start(lease)
    }
    return taken.length
  }

  /** The number of leases that this node holds, including those of stopping instances. */
  #held(kind: InstanceKind): number {
    const running = [...this.#running.values()].filter(({ lease }) => lease.kind === kind)
    return running.length + [...this.#stopping.values()].filter(({ lease }) => lease.kind === kind).length
  }

  /** The most recently started instances, as many as exceed the share. */
  #beyondShare(kind: InstanceKind, share: number): [InstanceId, Running][] {
    const candidates = [...this.#running].filter(([, { lease, running }]) => lease.kind === kind && !running.isLinking)
    const newest = candidates.reverse().slice(0, Math.max(0, this.#held(kind) - share))
    return newest.map(([instanceId, { running }]) => [instanceId, running])
  }

  /** An instance that drains for a long time holds up only its own place among the ten. */
  #handOver(excess: readonly [InstanceId, Running][]): void {
    if (this.#stopping.size > 0) return
    const next = excess.filter(([instanceId]) => !this.#leaving.has(instanceId))
    for (const [instanceId, running] of next.slice(0, HAND_OVER_BATCH - this.#leaving.size)) {
      this.#leaving.add(instanceId)
      running
        .drain()
        .catch(error => this.#options.logger.error({ err: error, instanceId }, 'instance.drain_failed'))
        .finally(() => {
          this.#leaving.delete(instanceId)
          if (this.#running.get(instanceId)?.running !== running) return
          if (running.isLinking) running.resume()
          else this.#stop(instanceId, true)
        })
    }
  }

  /** Releases the lease of a stopped instance: its release may have failed, or the lease seemed lost at the stop. */
  async #releaseEnded(lease: HeldLease): Promise<void> {
    const { leases, logger } = this.#options
    const { instanceId } = lease
    if (this.#stopping.has(instanceId)) return
    await leases.release(lease).catch(error => logger.warn({ err: error, instanceId }, 'leases.release_failed'))
  }

  #start(lease: HeldLease): void {
    if (this.#closed || this.#running.has(lease.instanceId) || this.#stopping.has(lease.instanceId)) return
    this.#endedEpochs.delete(lease.instanceId)
    const end = (leaseHeld: boolean) => {
      if (this.#running.get(lease.instanceId)?.lease !== lease) return
      this.#stop(lease.instanceId, leaseHeld, leaseHeld ? CRASH_GRACE_MS : undefined)
    }
    const running = this.#options.run(lease, { onLeaseLost: () => end(false), onCrashed: () => end(true) })
    this.#running.set(lease.instanceId, { lease, running })
  }

  #stop(instanceId: InstanceId, leaseHeld: boolean, graceMs?: number): void {
    const entry = this.#running.get(instanceId)
    if (!entry) return
    this.#running.delete(instanceId)
    this.#endedEpochs.set(instanceId, entry.lease.epoch)
    const done = entry.running
      .stop(leaseHeld, graceMs)
      .then(() => (leaseHeld ? this.#options.leases.release(entry.lease) : undefined))
      .catch(error => this.#options.logger.error({ err: error, instanceId }, 'instance.stop_failed'))
      .finally(() => {
        this.#stopping.delete(instanceId)
        this.#requestStep()
      })
    this.#stopping.set(instanceId, { ...entry, done })
  }
}
