import type { InstanceId } from '../../domain/ids.ts'
import { type Clock, systemClock } from '../../kit/clock.ts'
import type { Foreground } from '../../kit/foreground.ts'
import { LeaseLost, StoreUnavailable } from '../errors.ts'
import { type Backend, PostFailed } from './backend.ts'
import { arrange, type Fence, type Operation, type Turn, type Unit } from './operation.ts'

/** A larger commit would delay its first units and, on SQLite, block the process. */
const MAX_UNITS_PER_COMMIT = 128
/** Above this, new units are refused, because the store cannot keep up. */
const MAX_WAITING = 10_000
/** A commit that takes longer indicates a hanging disk or database. New units are refused instead of queued behind it. */
const STALLED_AFTER_MS = 5_000
const MAX_CONFLICTS = 5
/** After a commit waited too long for a lock, its parts are tried one by one, and each waits for locks only this long. */
const LOCK_TIMEOUT_OF_PARTS_MS = 100
/** After this time, parts that wait for a lock are not divided further. */
const DIVIDE_WITHIN_MS = 1_000

/** How long units wait for running commits before they start one of their own, if the concurrency limit allows. */
const JOIN_WITHIN_MS = 10

/** How soon a commit that yielded to the foreground is tried again. */
const LOOK_AGAIN_MS = 2

export interface WriterOptions {
  commitsAtOnce?: number
  foreground?: Pick<Foreground, 'hasPriority'> | null
  /** How long a commit waits for a lock of another transaction. Default: that of the backend. */
  lockTimeoutMs?: number | undefined
  clock?: Pick<Clock, 'steady'>
}

/** Commits of one kind of units: those that have started, and the units that wait. */
interface CommitQueue {
  readonly commitsAtOnce: number
  /** Its commits start later while this has priority. */
  readonly yieldsTo: Pick<Foreground, 'hasPriority'> | null
  waiting: Unit[]
  /** Start times of the running commits, the oldest first. */
  readonly begunAt: number[]
  /** The instances with units in a running commit, and when it started. Other units of these instances wait for it. */
  readonly busy: Map<InstanceId, number>
  startScheduled: boolean
  timer: NodeJS.Timeout | undefined
}

/**
 * Batches writes into commits and keeps the order of each instance's units. Units that arrive during a commit share the
 * next commit. It begins when the current commit ends, or earlier if that is slow or a full batch is waiting. At most
 * `commitsAtOnce` of these commits run concurrently. A promise resolves only after its commit. A unit rejects
 * alone if it fails, or if it waits too long for a lock, which a frozen node may hold. The others are committed without
 * it.
 *
 * If commits can run concurrently, independent units have commits of their own, which do not wait for other commits.
 * Independent units that may be undone have commits separate from both, which start later while the foreground has
 * priority. Independent units keep their order only relative to the rare units of their instance, by turns.
 */
export class Writer {
  readonly #backend: Backend
  readonly #fence: Fence
  readonly #lockTimeoutMs: number | undefined
  readonly #clock: Pick<Clock, 'steady'>
  readonly #ordered: CommitQueue
  readonly #independent: CommitQueue
  readonly #undoable: CommitQueue
  readonly #queues: readonly CommitQueue[]
  readonly #runsConcurrently: boolean
  /** The turns of each instance that have not ended, in their order. */
  readonly #turns = new Map<InstanceId, Turn[]>()
  #closed: PromiseWithResolvers<void> | null = null

  constructor(
    backend: Backend,
    fence: Fence,
    { commitsAtOnce = 1, foreground = null, lockTimeoutMs, clock = systemClock }: WriterOptions = {},
  ) {
    this.#backend = backend
    this.#fence = fence
    this.#lockTimeoutMs = lockTimeoutMs
    this.#clock = clock
    this.#ordered = newQueue(commitsAtOnce)
    this.#runsConcurrently = commitsAtOnce > 1
    this.#independent = this.#runsConcurrently ? newQueue(1) : this.#ordered
    this.#undoable = this.#runsConcurrently ? newQueue(1, foreground) : this.#ordered
    this.#queues = this.#runsConcurrently ? [this.#ordered, this.#independent, this.#undoable] : [this.#ordered]
  }

  write<I, O>(operation: Operation<I, O>, input: I): Promise<O> {
    const { isIndependent, mayBeUndone, urgent = false } = operation
    const instanceId = operation.instanceId(input)
    const separate = mayBeUndone ? this.#undoable : this.#independent
    const queue = isIndependent ? separate : this.#ordered
    if (this.#closed !== null) return Promise.reject(new StoreUnavailable('The store is closing.'))
    const blockedSince =
      queue.busy.get(instanceId) ?? (canStart(queue) ? Number.POSITIVE_INFINITY : queue.begunAt.at(-1)!)
    const isStalled = this.#clock.steady() - blockedSince > STALLED_AFTER_MS
    if (!urgent && (isStalled || queue.waiting.length >= MAX_WAITING))
      return Promise.reject(new StoreUnavailable('Too many writes are waiting.'))
    const { promise, resolve, reject } = Promise.withResolvers<O>()
    const lease = operation.lease?.(input)
    // Urgent units overtake the others, so they have no turn.
    const takesTurns = this.#runsConcurrently && !urgent && (operation.isRare || isIndependent)
    const turn = takesTurns ? this.#joinTurn(operation.isRare === true, instanceId) : null
    const unit = { operation, input, instanceId, lease, turn, resolve, reject } as Unit
    if (urgent) queue.waiting.unshift(unit)
    else queue.waiting.push(unit)
    this.#startSoon(queue)
    return promise
  }

  #joinTurn(isRare: boolean, instanceId: InstanceId): Turn {
    const turns = this.#turns.get(instanceId) ?? []
    this.#turns.set(instanceId, turns)
    if (turns.at(-1)?.isRare !== isRare) turns.push({ isRare, units: 0 })
    const turn = turns.at(-1)!
    turn.units++
    return turn
  }

  #leaveTurn(instanceId: InstanceId, turn: Turn): void {
    turn.units--
    const turns = this.#turns.get(instanceId)!
    while (turns[0]?.units === 0) turns.shift()
    if (turns.length === 0) this.#turns.delete(instanceId)
  }

  /** Resolves when all accepted units are settled. */
  close(): Promise<void> {
    this.#closed ??= Promise.withResolvers()
    this.#finishClosing()
    return this.#closed.promise
  }

  #finishClosing(): void {
    const isIdle = this.#queues.every(({ waiting, begunAt }) => waiting.length === 0 && begunAt.length === 0)
    if (isIdle) this.#closed?.resolve()
  }

  /** Deferred, so that all callbacks of this event-loop turn can add their units first. */
  #startSoon(queue: CommitQueue): void {
    if (queue.startScheduled || !canStart(queue)) return
    queue.startScheduled = true
    setImmediate(this.#startCommits, queue)
  }

  readonly #startCommits = (queue: CommitQueue): void => {
    queue.startScheduled = false
    clearTimeout(queue.timer)
    if (queue.yieldsTo?.hasPriority) {
      queue.timer = setTimeout(this.#startCommits, LOOK_AGAIN_MS, queue)
      return
    }
    while (queue.waiting.length > 0 && canStart(queue)) {
      // Waiting units start when a running commit ends, or earlier if it takes long or a batch is full.
      const latestStart = queue.begunAt.at(-1)
      const mayWait = latestStart !== undefined && queue.waiting.length < MAX_UNITS_PER_COMMIT
      const waitMs = mayWait ? latestStart + JOIN_WITHIN_MS - this.#clock.steady() : 0
      if (waitMs > 0) {
        queue.timer = setTimeout(this.#startCommits, waitMs, queue)
        return
      }
      const units = this.#take(queue)
      if (units.length === 0) return
      void this.#start(queue, units)
    }
  }

  /**
   * Takes the next units that may share a commit. Leaves units of an instance in a running commit, and units behind a
   * unit of their instance that is left.
   */
  #take(queue: CommitQueue): Unit[] {
    const units: Unit[] = []
    const left: Unit[] = []
    const held = new Set<InstanceId>()
    const mayRunAlone = this.#backend.autocommit !== null
    for (const unit of queue.waiting) {
      const { operation, turn, instanceId } = unit
      const first = units[0]?.operation ?? operation
      const staysAlone = mayRunAlone && first !== operation && (first.runAlone || operation.runAlone)
      const mayStart = turn === null || turn === this.#turns.get(instanceId)![0]
      const isFree = mayStart && !held.has(instanceId) && !queue.busy.has(instanceId)
      if (isFree && !staysAlone && units.length < MAX_UNITS_PER_COMMIT) units.push(unit)
      else {
        left.push(unit)
        held.add(instanceId)
      }
    }
    queue.waiting = left
    return units
  }

  async #start(queue: CommitQueue, units: readonly Unit[]): Promise<void> {
    const begunAt = this.#clock.steady()
    queue.begunAt.push(begunAt)
    for (const { instanceId } of units) queue.busy.set(instanceId, begunAt)
    await this.#settle(units)
    queue.begunAt.splice(queue.begunAt.indexOf(begunAt), 1)
    for (const { instanceId, turn } of units) {
      queue.busy.delete(instanceId)
      if (turn !== null) this.#leaveTurn(instanceId, turn)
    }
    for (const each of this.#queues) if (each.waiting.length > 0) this.#startSoon(each)
    if (this.#closed !== null) this.#finishClosing()
  }

  /** @param divideUntil set for the parts of a commit that waited too long for a lock (see `#settleParts`) */
  async #settle(units: readonly Unit[], divideUntil: number | null = null, conflicts = 0): Promise<void> {
    try {
      const outcomes = await this.#commit(units, divideUntil !== null)
      for (const unit of units) {
        if (outcomes.has(unit)) unit.resolve(outcomes.get(unit))
        else unit.reject(new LeaseLost(unit.instanceId))
      }
    } catch (error) {
      const meaning = error instanceof StoreUnavailable ? 'unavailable' : this.#backend.classify(error)
      if (meaning === 'unavailable') {
        rejectAll(units, error instanceof StoreUnavailable ? error : unavailable(error))
      } else if (meaning === 'conflict' && conflicts < MAX_CONFLICTS) {
        await this.#settle(units, divideUntil, conflicts + 1)
      } else if (meaning === 'locked') {
        await this.#settleParts(units, divideUntil, error)
      } else if (units.length === 1) {
        units[0]!.reject(error)
      } else {
        for (const part of halve(units)) await this.#settle(part, divideUntil)
      }
    }
  }

  /**
   * A unit of this commit waited too long for a lock. Commits the others without it. The time for this is limited,
   * because the next commits have to wait.
   */
  async #settleParts(units: readonly Unit[], divideUntil: number | null, error: unknown): Promise<void> {
    const now = this.#clock.steady()
    const until = divideUntil ?? now + DIVIDE_WITHIN_MS
    const parts = halveByOrder(units)
    const isTriedAgain = divideUntil !== null
    if (isTriedAgain && (parts.length === 1 || now > until)) rejectAll(units, unavailable(error))
    else for (const part of parts) await this.#settle(part, until)
  }

  /**
   * @param isPart whether an earlier commit of these units waited too long for a lock
   * @returns the outcomes of the units, except those whose lease was lost
   */
  async #commit(units: readonly Unit[], isPart: boolean): Promise<Outcomes> {
    const { autocommit } = this.#backend
    const { operation } = units[0]!
    // A part needs a transaction, because its lock timeout is set for a transaction.
    if (autocommit !== null && operation.runAlone && !isPart) {
      const inputs = units.map(unit => unit.input)
      const results = await operation.runAlone(autocommit, inputs)
      return new Map(units.map((unit, index) => [unit, results[index]]))
    }
    const tx = await this.#backend.begin(isPart ? LOCK_TIMEOUT_OF_PARTS_MS : this.#lockTimeoutMs)
    const outcomes = new Map<Unit, unknown>()
    let mayBeUndone = true
    try {
      let allowed = await this.#fence.allowed(tx, units)
      for (const { operation, units: members } of arrange(units)) {
        mayBeUndone &&= operation.mayBeUndone === true
        const granted: Unit[] = []
        const inputs: unknown[] = []
        for (const unit of members) {
          if (!allowed.has(unit)) continue
          granted.push(unit)
          inputs.push(unit.input)
        }
        if (granted.length === 0) continue
        const results = await operation.run(tx, inputs)
        for (const [index, unit] of granted.entries()) outcomes.set(unit, results[index])
        // The leases are locked until the commit, so only this transaction can move them.
        if (operation.isRare) allowed = await this.#fence.allowed(tx, units)
      }
    } catch (error) {
      await tx.rollback()
      throw error
    }
    try {
      await tx.commit(!mayBeUndone)
    } catch (error) {
      await tx.rollback()
      if (error instanceof PostFailed) throw error.cause
      throw new StoreUnavailable('The commit failed.', { cause: error })
    }
    return outcomes
  }
}

type Outcomes = ReadonlyMap<Unit, unknown>

function newQueue(commitsAtOnce: number, yieldsTo: CommitQueue['yieldsTo'] = null): CommitQueue {
  return { commitsAtOnce, yieldsTo, waiting: [], begunAt: [], busy: new Map(), startScheduled: false, timer: undefined }
}

function canStart({ begunAt, commitsAtOnce }: CommitQueue): boolean {
  return begunAt.length < commitsAtOnce
}

function unavailable(cause: unknown): StoreUnavailable {
  return new StoreUnavailable('The write failed.', { cause })
}

function rejectAll(units: readonly Unit[], error: Error): void {
  for (const unit of units) unit.reject(error)
}

/** One or two parts. */
function halve<T>(items: readonly T[]): T[][] {
  const middle = Math.ceil(items.length / 2)
  return [items.slice(0, middle), items.slice(middle)].filter(part => part.length > 0)
}

/** The same, but the ordered units of an instance stay together, so that none of them overtakes a waiting one. */
function halveByOrder(units: readonly Unit[]): Unit[][] {
  const together = Map.groupBy(units, unit =>
    unit.instanceId === '' || unit.operation.isIndependent ? unit : unit.instanceId,
  )
  return halve([...together.values()]).map(part => part.flat())
}
