import type { InstanceId } from '../domain/ids.ts'
import type { Lease } from '../store/leases/leases.ts'
import type { AttemptSettings, EndedAttempt } from './attempt.ts'
import type { Clock } from './clock.ts'
import { systemClock } from './clock.ts'
import { createConcurrencyLimit } from './concurrency-limit.ts'
import type { LaneOptions } from './lane.ts'
import { Lane } from './lane.ts'

export interface DispatcherOptions
  extends Pick<LaneOptions, 'store' | 'post' | 'logger' | 'mayAct' | 'onLeaseLost' | 'onEnded'> {
  settings: AttemptSettings & {
    /** Open requests of this node, over all instances (`createConcurrencyLimit`). */
    maxInFlight?: number
  }
  clock?: Clock
}

/** Runs the lanes of the instances that this node owns. */
export interface Dispatcher {
  /** Starts the lane of an instance that this node owns. After `onLeaseLost` it must be opened again. */
  open(lease: Lease): void
  /** Starts no more attempts. Resolves when those in flight are recorded; after `graceMs` (8 s) it aborts the rest. */
  shut(instanceId: InstanceId, graceMs?: number): Promise<void>
  close(graceMs?: number): Promise<void>
  /** Attempts in flight, for metrics. */
  inFlight(): number
}

const MAX_IN_FLIGHT = 1_024
/** The whole service stops within 10 s. */
const GRACE_MS = 8_000
/** Every lane is polled once in this time, because hints may be lost. */
const POLL_EVERY_MS = 30_000
const POLL_STEP_MS = 1_000
/** How long unrecorded attempts are kept for an instance that comes back to this node. */
const UNRECORDED_KEPT_MS = 60_000

export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { settings, clock = systemClock } = options
  const limit = createConcurrencyLimit(settings.maxInFlight ?? MAX_IN_FLIGHT, clock)
  const lanes = new Map<InstanceId, Lane>()
  const closing = new Map<InstanceId, Promise<void>>()
  /** Instances to open again when their lane has been shut. */
  const reopening = new Map<InstanceId, Lease>()
  const unrecorded = new Map<InstanceId, { attempts: readonly EndedAttempt[]; forget: () => void }>()
  let closed = false

  const laneOptions: LaneOptions = {
    ...options,
    clock,
    limit,
    onLeaseLost(instanceId) {
      void shut(instanceId)
      options.onLeaseLost(instanceId)
    },
  }

  let cancelPoll = clock.after(POLL_STEP_MS, pollSome)
  let lanesToPoll = lanes.values()
  let pollsDue = 0

  /** Polls a share of the lanes, so that the load is spread over time. */
  function pollSome(): void {
    pollsDue += (lanes.size * POLL_STEP_MS) / POLL_EVERY_MS
    for (; pollsDue >= 1; pollsDue -= 1) {
      const next = lanesToPoll.next()
      if (next.done) lanesToPoll = lanes.values()
      const lane = next.done ? lanesToPoll.next().value : next.value
      lane?.wake()
    }
    cancelPoll = clock.after(POLL_STEP_MS, pollSome)
  }

  function open(lease: Lease): void {
    const { instanceId } = lease
    if (closed) return
    if (closing.has(instanceId)) {
      reopening.set(instanceId, lease)
      return
    }
    const existing = lanes.get(instanceId)
    if (existing) {
      existing.adopt(lease)
      return
    }
    const lane = new Lane(lease, laneOptions, takeUnrecorded(instanceId))
    lanes.set(instanceId, lane)
    lane.wake()
  }

  async function close(instanceId: InstanceId, lane: Lane, graceMs: number): Promise<void> {
    await lane.shut(graceMs)
    closing.delete(instanceId)
    keepUnrecorded(instanceId, lane.unrecorded)
    const lease = reopening.get(instanceId)
    reopening.delete(instanceId)
    if (lease) open(lease)
  }

  async function shut(instanceId: InstanceId, graceMs = GRACE_MS): Promise<void> {
    reopening.delete(instanceId)
    const lane = lanes.get(instanceId)
    if (lane) {
      lanes.delete(instanceId)
      closing.set(instanceId, close(instanceId, lane, graceMs))
    }
    await closing.get(instanceId)
  }

  function keepUnrecorded(instanceId: InstanceId, attempts: readonly EndedAttempt[]): void {
    if (closed || attempts.length === 0) return
    const forget = clock.after(UNRECORDED_KEPT_MS, () => unrecorded.delete(instanceId))
    unrecorded.set(instanceId, { attempts, forget })
  }

  function takeUnrecorded(instanceId: InstanceId): readonly EndedAttempt[] {
    const kept = unrecorded.get(instanceId)
    unrecorded.delete(instanceId)
    kept?.forget()
    return kept?.attempts ?? []
  }

  return {
    open,
    shut,
    async close(graceMs) {
      closed = true
      cancelPoll()
      for (const { forget } of unrecorded.values()) forget()
      await Promise.all([...lanes.keys()].map(instanceId => shut(instanceId, graceMs)))
      await Promise.all(closing.values())
    },
    inFlight() {
      let sum = 0
      for (const lane of lanes.values()) sum += lane.inFlight
      return sum
    },
  }
}
