import type { InstanceId } from '../../domain/ids.ts'
import { LeaseLost, StoreUnavailable } from '../errors.ts'
import type { Lease } from '../leases/leases.ts'
import { type Backend, PostFailed, type Transaction } from './backend.ts'
import { arrange, type Operation, type Unit } from './operation.ts'
import type { RowsStatement, Statements } from './statement.ts'

/** A larger commit would delay its first units and, on SQLite, block the process. */
const MAX_UNITS_PER_COMMIT = 128
/** Above this, new units are refused, because the store cannot keep up. */
const MAX_WAITING = 10_000
/** A commit that takes longer indicates a hanging disk or database. New units are refused instead of queued behind it. */
const STALLED_AFTER_MS = 5_000
const MAX_CONFLICTS = 5

/** How long units wait for running commits before they start one of their own, if the concurrency limit allows. */
const JOIN_WITHIN_MS = 10

/**
 * Batches writes into commits and keeps the order of each instance's units. Units that arrive during a commit share the next
 * one. It begins when the current one ends; earlier if that one is slow or a full batch is waiting, up to `commitsAtOnce`
 * concurrent commits. A promise resolves only after its commit. A failing unit rejects alone; the others are committed
 * without it.
 */
export class Writer {
  readonly #backend: Backend
  readonly #fence: Fence
  readonly #commitsAtOnce: number
  readonly #monotonicNow: () => number
  #waiting: Unit[] = []
  /** Start times of the running commits, the oldest first. */
  readonly #begunAt: number[] = []
  /** Instances with units in a running commit, and its start time. Their other units wait for it. */
  readonly #busy = new Map<InstanceId, number>()
  #startScheduled = false
  #timer: NodeJS.Timeout | undefined
  #closed: PromiseWithResolvers<void> | null = null

  constructor(backend: Backend, fence: Fence, commitsAtOnce = 1, monotonicNow = () => performance.now()) {
    this.#backend = backend
    this.#fence = fence
    this.#commitsAtOnce = commitsAtOnce
    this.#monotonicNow = monotonicNow
  }

  write<I, O>(operation: Operation<I, O>, input: I): Promise<O> {
    const urgent = operation.urgent === true
    const instanceId = operation.instanceId(input)
    if (this.#closed !== null) return Promise.reject(new StoreUnavailable('The store is closing.'))
    if (!urgent && this.#isOverloaded(instanceId))
      return Promise.reject(new StoreUnavailable('Too many writes are waiting.'))
    const { promise, resolve, reject } = Promise.withResolvers<O>()
    const unit = { operation, input, instanceId, lease: operation.lease?.(input), resolve, reject } as Unit
    if (urgent) this.#waiting.unshift(unit)
    else this.#waiting.push(unit)
    this.#startSoon()
    return promise
  }

  /** Resolves when all accepted units are settled. */
  close(): Promise<void> {
    this.#closed ??= Promise.withResolvers()
    if (this.#waiting.length === 0 && this.#begunAt.length === 0) this.#closed.resolve()
    return this.#closed.promise
  }

  #isOverloaded(instanceId: InstanceId): boolean {
    const behind = this.#busy.get(instanceId) ?? (this.#canStart ? Number.POSITIVE_INFINITY : this.#begunAt.at(-1)!)
    return this.#waiting.length >= MAX_WAITING || this.#monotonicNow() - behind > STALLED_AFTER_MS
  }

  get #canStart(): boolean {
    return this.#begunAt.length < this.#commitsAtOnce
  }

  /** Deferred, so that all callbacks of this event-loop turn can add their units first. */
  #startSoon(): void {
    if (this.#startScheduled || !this.#canStart) return
    this.#startScheduled = true
    setImmediate(this.#startCommits)
  }

  readonly #startCommits = (): void => {
    this.#startScheduled = false
    clearTimeout(this.#timer)
    while (this.#waiting.length > 0 && this.#canStart) {
      const waitMs = this.#joinMs
      if (waitMs > 0) {
        this.#timer = setTimeout(this.#startCommits, waitMs)
        return
      }
      const units = this.#take(MAX_UNITS_PER_COMMIT)
      if (units.length === 0) return
      void this.#start(units)
    }
  }

  /** How long waiting units continue to wait for the running commits, in milliseconds. */
  get #joinMs(): number {
    const latestStart = this.#begunAt.at(-1)
    if (latestStart === undefined || this.#waiting.length >= MAX_UNITS_PER_COMMIT) return 0
    return Math.max(0, latestStart + JOIN_WITHIN_MS - this.#monotonicNow())
  }

  /** Takes the next units, except those of instances in a running commit. */
  #take(atMost: number): Unit[] {
    if (this.#busy.size === 0) return this.#waiting.splice(0, atMost)
    const units: Unit[] = []
    const left: Unit[] = []
    for (const unit of this.#waiting) {
      const isFree = !this.#busy.has(unit.instanceId)
      if (isFree && units.length < atMost) units.push(unit)
      else left.push(unit)
    }
    this.#waiting = left
    return units
  }

  async #start(units: readonly Unit[]): Promise<void> {
    const begunAt = this.#monotonicNow()
    this.#begunAt.push(begunAt)
    for (const { instanceId } of units) this.#busy.set(instanceId, begunAt)
    await this.#settle(units)
    this.#begunAt.splice(this.#begunAt.indexOf(begunAt), 1)
    for (const { instanceId } of units) this.#busy.delete(instanceId)
    if (this.#waiting.length > 0) this.#startSoon()
    else if (this.#begunAt.length === 0) this.#closed?.resolve()
  }

  async #settle(units: readonly Unit[], conflicts = 0): Promise<void> {
    try {
      const outcomes = await this.#commit(units)
      for (const unit of units) {
        if (outcomes.has(unit)) unit.resolve(outcomes.get(unit))
        else unit.reject(new LeaseLost(unit.instanceId))
      }
    } catch (error) {
      const meaning = error instanceof StoreUnavailable ? 'unavailable' : this.#backend.classify(error)
      if (meaning === 'unavailable') {
        const unavailable =
          error instanceof StoreUnavailable ? error : new StoreUnavailable('The write failed.', { cause: error })
        for (const unit of units) unit.reject(unavailable)
      } else if (meaning === 'conflict' && conflicts < MAX_CONFLICTS) {
        await this.#settle(units, conflicts + 1)
      } else if (units.length === 1) {
        units[0]!.reject(error)
      } else {
        const middle = Math.ceil(units.length / 2)
        await this.#settle(units.slice(0, middle))
        await this.#settle(units.slice(middle))
      }
    }
  }

  /** @returns the outcomes of the units, except those whose lease was lost */
  async #commit(units: readonly Unit[]): Promise<Outcomes> {
    const { autocommit } = this.#backend
    const { operation } = units[0]!
    if (autocommit !== null && operation.runAlone && units.every(unit => unit.operation === operation)) {
      const inputs = units.map(unit => unit.input)
      const results = await operation.runAlone(autocommit, inputs)
      return new Map(units.map((unit, index) => [unit, results[index]]))
    }
    const tx = await this.#backend.begin()
    let outcomes: Outcomes
    try {
      outcomes = await this.#run(tx, units)
    } catch (error) {
      await tx.rollback()
      throw error
    }
    try {
      await tx.commit()
    } catch (error) {
      await tx.rollback()
      if (error instanceof PostFailed) throw error.cause
      throw new StoreUnavailable('The commit failed.', { cause: error })
    }
    return outcomes
  }

  async #run(tx: Transaction, units: readonly Unit[]): Promise<Outcomes> {
    const outcomes = new Map<Unit, unknown>()
    let held = await this.#fence.held(tx, units)
    for (const { operation, units: members } of arrange(units)) {
      const granted: Unit[] = []
      const inputs: unknown[] = []
      for (const unit of members) {
        if (unit.lease !== undefined && !held.has(leaseKey(unit.lease))) continue
        granted.push(unit)
        inputs.push(unit.input)
      }
      if (granted.length === 0) continue
      const results = await operation.run(tx, inputs)
      for (const [index, unit] of granted.entries()) outcomes.set(unit, results[index])
      // The leases are locked until the commit, so only this transaction can move them.
      if (operation.isRare) held = await this.#fence.held(tx, units)
    }
    return outcomes
  }
}

type Outcomes = ReadonlyMap<Unit, unknown>

/** Finds the leases that are still held, and locks them until the transaction ends. */
export class Fence {
  readonly #find: RowsStatement<{ instance_id: string; owner: string; epoch: number }, LeaseRow>

  constructor(statements: Statements) {
    const columns = { instance_id: 'text', owner: 'text', epoch: 'integer' } as const
    // A renewal is not blocked by this lock, because it changes no key. A takeover is.
    this.#find = statements.find('leases', columns, ['instance_id', 'owner', 'epoch'], { lock: 'key share' })
  }

  /** @returns the keys of the leases of these units that are still held */
  async held(tx: Transaction, units: readonly Unit[]): Promise<Set<string>> {
    const leases = new Map<string, { instance_id: string; owner: string; epoch: number }>()
    for (const { lease } of units) {
      if (lease) leases.set(leaseKey(lease), { instance_id: lease.instanceId, owner: lease.owner, epoch: lease.epoch })
    }
    const held = new Set<string>()
    if (leases.size === 0) return held
    for (const { instance_id: instanceId, owner, epoch } of await tx.each(this.#find, [...leases.values()])) {
      held.add(leaseKey({ instanceId, owner: owner!, epoch }))
    }
    return held
  }
}

interface LeaseRow {
  instance_id: string
  owner: string | null
  epoch: number
}

function leaseKey({ instanceId, owner, epoch }: Lease): string {
  return `${instanceId}/${epoch}/${owner}`
}
