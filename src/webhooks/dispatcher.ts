import type { InstanceId } from '../domain/ids.ts'
import type { Clock } from '../kit/clock.ts'
import { systemClock } from '../kit/clock.ts'
import type { Lease } from '../store/leases/leases.ts'
import type { AttemptSettings, EndedAttempt } from './attempt.ts'
import { createConcurrencyLimit } from './concurrency-limit.ts'
import { InstanceLanes } from './instance-lanes.ts'
import type { LaneOptions } from './lane.ts'

export interface DispatcherOptions
  extends Pick<LaneOptions, 'store' | 'post' | 'logger' | 'mayAct' | 'onLeaseLost' | 'observer' | 'traces'> {
  settings: AttemptSettings & {
    /** Limits the open requests of this node; see `createConcurrencyLimit` for what it does not include. */
    maxInFlight?: number
  }
  clock?: Clock
}

const MAX_IN_FLIGHT = 1_024
/** For instances that stop while the service runs. */
const GRACE_MS = 8_000
/** The lanes of every instance are polled once in this time, because hints may be lost. */
const POLL_EVERY_MS = 30_000
const POLL_STEP_MS = 1_000
/** How long unrecorded attempts are kept for an instance that comes back to this node. */
const UNRECORDED_KEPT_MS = 60_000

/** Runs the lanes of the instances that this node owns. */
export class Dispatcher {
  readonly #clock: Clock
  readonly #laneOptions: LaneOptions
  readonly #lanes = new Map<InstanceId, InstanceLanes>()
  readonly #closing = new Map<InstanceId, { lanes: InstanceLanes; done: Promise<void> }>()
  /** Instances to open again when their lanes have been shut. */
  readonly #reopening = new Map<InstanceId, Lease>()
  readonly #unrecorded = new Map<InstanceId, { attempts: readonly EndedAttempt[]; forget: () => void }>()
  #lanesToPoll = this.#lanes.values()
  #pollsDue = 0
  #cancelPoll: () => void
  #closed = false

  constructor(options: DispatcherOptions) {
    const { settings, clock = systemClock } = options
    this.#clock = clock
    this.#laneOptions = {
      ...options,
      clock,
      limit: createConcurrencyLimit(settings.maxInFlight ?? MAX_IN_FLIGHT, clock, options.store.foreground),
      onLeaseLost: instanceId => {
        void this.shut(instanceId)
        options.onLeaseLost(instanceId)
      },
    }
    this.#cancelPoll = clock.after(POLL_STEP_MS, () => this.#pollSome())
  }

  /** Attempts in flight, for metrics. */
  get inFlight(): number {
    let sum = 0
    for (const lanes of this.#lanes.values()) sum += lanes.inFlight
    return sum
  }

  /** Starts the lanes of an instance that this node owns. After `onLeaseLost` it must be opened again. */
  open(lease: Lease): void {
    const { instanceId } = lease
    if (this.#closed) return
    if (this.#closing.has(instanceId)) {
      this.#reopening.set(instanceId, lease)
      return
    }
    const existing = this.#lanes.get(instanceId)
    if (existing) {
      existing.adopt(lease)
      return
    }
    const lanes = new InstanceLanes(lease, this.#laneOptions, this.#takeUnrecorded(instanceId))
    this.#lanes.set(instanceId, lanes)
    lanes.poll()
  }

  /**
   * Starts no more attempts. Resolves when those in flight are recorded; after `graceMs` (default: 8 s) it aborts the
   * rest. If the lanes are already being shut, the shorter grace applies: a stop of the node does not wait for a longer
   * drain.
   */
  async shut(instanceId: InstanceId, graceMs = GRACE_MS): Promise<void> {
    this.#reopening.delete(instanceId)
    const lanes = this.#lanes.get(instanceId)
    const closing = this.#closing.get(instanceId)
    if (lanes) {
      this.#lanes.delete(instanceId)
      const done = this.#close(instanceId, lanes, graceMs)
      this.#closing.set(instanceId, { lanes, done })
      await done
    } else if (closing) await Promise.race([closing.done, closing.lanes.shut(graceMs)])
  }

  async close(graceMs?: number): Promise<void> {
    this.#closed = true
    this.#cancelPoll()
    for (const { forget } of this.#unrecorded.values()) forget()
    const open = [...this.#lanes.keys(), ...this.#closing.keys()]
    await Promise.all(open.map(instanceId => this.shut(instanceId, graceMs)))
  }

  async #close(instanceId: InstanceId, lanes: InstanceLanes, graceMs: number): Promise<void> {
    await lanes.shut(graceMs)
    this.#closing.delete(instanceId)
    this.#keepUnrecorded(instanceId, lanes.unrecorded)
    const lease = this.#reopening.get(instanceId)
    this.#reopening.delete(instanceId)
    if (lease) this.open(lease)
  }

  /** Polls a share of the instances, so that the load is spread over time. */
  #pollSome(): void {
    this.#pollsDue += (this.#lanes.size * POLL_STEP_MS) / POLL_EVERY_MS
    for (; this.#pollsDue >= 1; this.#pollsDue -= 1) {
      const next = this.#lanesToPoll.next()
      if (next.done) this.#lanesToPoll = this.#lanes.values()
      const lanes = next.done ? this.#lanesToPoll.next().value : next.value
      lanes?.poll()
    }
    this.#cancelPoll = this.#clock.after(POLL_STEP_MS, () => this.#pollSome())
  }

  #keepUnrecorded(instanceId: InstanceId, attempts: readonly EndedAttempt[]): void {
    if (this.#closed || attempts.length === 0) return
    const forget = this.#clock.after(UNRECORDED_KEPT_MS, () => this.#unrecorded.delete(instanceId))
    this.#unrecorded.set(instanceId, { attempts, forget })
  }

  #takeUnrecorded(instanceId: InstanceId): readonly EndedAttempt[] {
    const kept = this.#unrecorded.get(instanceId)
    this.#unrecorded.delete(instanceId)
    kept?.forget()
    return kept?.attempts ?? []
  }
}
