import type { InstanceId } from '../domain/ids.ts'
import type { Hints } from '../store/hints.ts'
import type { Lease } from '../store/leases/leases.ts'
import type { AttemptSettings, EndedAttempt } from './attempt.ts'
import type { Clock } from './clock.ts'
import { systemClock } from './clock.ts'
import type { LaneStore, LaneSurroundings } from './lane.ts'
import { Lane } from './lane.ts'
import { createSlots } from './slots.ts'

export interface DispatcherOptions
  extends Pick<LaneSurroundings, 'post' | 'logger' | 'mayAct' | 'onLeaseLost' | 'onEnded'> {
  store: LaneStore & { hints: Hints }
  settings: AttemptSettings & {
    /** Requests open on this node at once, over all instances. */
    globalCap?: number
  }
  clock?: Clock
}

/** Runs the lanes of the instances that this node owns. */
export interface Dispatcher {
  /** This node owns the instance now. After `onLeaseLost` its lane starts nothing until it is opened anew. */
  open(lease: Lease): void
  /**
   * Starts no more attempts for the instance, and resolves when those in flight have ended and are recorded: after
   * `graceMs` (8 s) at the latest, when what is left is broken off.
   */
  shut(instanceId: InstanceId, graceMs?: number): Promise<void>
  /** The same for all of them. */
  close(graceMs?: number): Promise<void>
  /** Attempts under way, for metrics. */
  inFlight(): number
}

const GLOBAL_CAP = 1_024
/** The whole service stops within 10 s. */
const GRACE_MS = 8_000
/** Every lane is told to look once in this time, hint or no hint. */
const POLL_EVERY_MS = 30_000
const POLL_STEP_MS = 1_000
/** For so long an instance may come back and find what its last lane knew. */
const LEFTOVERS_KEPT_MS = 60_000

export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { store, settings, clock = systemClock } = options
  const slots = createSlots(settings.globalCap ?? GLOBAL_CAP, clock)
  const lanes = new Map<InstanceId, Lane>()
  const closing = new Map<InstanceId, Promise<void>>()
  /** An instance that comes back while its lane is being shut waits for that. */
  const reopening = new Map<InstanceId, Lease>()
  const leftovers = new Map<InstanceId, { attempts: readonly EndedAttempt[]; forget: () => void }>()
  let closed = false

  const surroundings: LaneSurroundings = {
    ...options,
    clock,
    slots,
    onLeaseLost(instanceId) {
      void shut(instanceId)
      options.onLeaseLost(instanceId)
    },
  }

  /** Of one lane: who listens for an instance's hints is known to be its owner. */
  const forgetHints = new Map<InstanceId, () => void>()
  let cancelPoll = clock.after(POLL_STEP_MS, pollSome)
  let polled = lanes.values()
  let owedPolls = 0

  /** A share of the lanes in each step, so that the poll is spread over its time. */
  function pollSome(): void {
    owedPolls += (lanes.size * POLL_STEP_MS) / POLL_EVERY_MS
    for (; owedPolls >= 1; owedPolls -= 1) {
      const next = polled.next()
      if (next.done) polled = lanes.values()
      const lane = next.done ? polled.next().value : next.value
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
    const lane = new Lane(lease, surroundings, takeLeftovers(instanceId))
    lanes.set(instanceId, lane)
    listen(instanceId, lane)
    lane.wake()
  }

  function listen(instanceId: InstanceId, lane: Lane): void {
    const stops = [
      store.hints.on('deliveries', () => lane.wake(), instanceId),
      store.hints.on('webhook', () => lane.onSecretChanged(), instanceId),
    ]
    forgetHints.set(instanceId, () => {
      for (const stop of stops) stop()
    })
  }

  async function close(instanceId: InstanceId, lane: Lane, graceMs: number): Promise<void> {
    await lane.shut(graceMs)
    closing.delete(instanceId)
    keepLeftovers(instanceId, lane.leftovers)
    const lease = reopening.get(instanceId)
    reopening.delete(instanceId)
    if (lease) open(lease)
  }

  async function shut(instanceId: InstanceId, graceMs = GRACE_MS): Promise<void> {
    reopening.delete(instanceId)
    const lane = lanes.get(instanceId)
    if (lane) {
      lanes.delete(instanceId)
      forgetHints.get(instanceId)?.()
      forgetHints.delete(instanceId)
      closing.set(instanceId, close(instanceId, lane, graceMs))
    }
    await closing.get(instanceId)
  }

  function keepLeftovers(instanceId: InstanceId, attempts: readonly EndedAttempt[]): void {
    if (closed || attempts.length === 0) return
    const forget = clock.after(LEFTOVERS_KEPT_MS, () => leftovers.delete(instanceId))
    leftovers.set(instanceId, { attempts, forget })
  }

  function takeLeftovers(instanceId: InstanceId): readonly EndedAttempt[] {
    const kept = leftovers.get(instanceId)
    leftovers.delete(instanceId)
    kept?.forget()
    return kept?.attempts ?? []
  }

  return {
    open,
    shut,
    async close(graceMs) {
      closed = true
      cancelPoll()
      for (const { forget } of leftovers.values()) forget()
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
