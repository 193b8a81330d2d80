import { LeaseLost, StoreUnavailable } from './errors.ts'
import { type Fence, leaseKey } from './fence.ts'
import { arrange, type Group, type Operation, type Unit } from './operation.ts'
import { type Backend, PostFailed, type Transaction } from './session.ts'

/** More in one commit would keep the first ones, and on SQLite the process, waiting for the last. */
const MAX_UNITS_PER_COMMIT = 128
/** Above this, a new unit is refused at once: the store cannot keep up, and waiting would only hide it. */
const MAX_WAITING = 10_000
/** A commit that takes longer has met a disk or a database that hangs: what comes now is refused instead of waiting behind. */
const STALLED_AFTER_MS = 5_000
const MAX_CONFLICTS = 5

/**
 * Writes in order, one commit at a time. Units that arrive while a commit runs share the next one; a promise resolves only
 * after the commit. A unit that fails rejects alone: the others are committed without it.
 */
export class Writer {
  readonly #backend: Backend
  readonly #fence: Fence
  #waiting: Unit[] = []
  #working: Promise<void> | null = null
  #closed = false
  #commitBegunAt = Number.POSITIVE_INFINITY
  readonly #monotonicNow: () => number

  constructor(backend: Backend, fence: Fence, monotonicNow = () => performance.now()) {
    this.#backend = backend
    this.#fence = fence
    this.#monotonicNow = monotonicNow
  }

  write<I, O>(operation: Operation<I, O>, input: I): Promise<O> {
    const urgent = operation.urgent === true
    if (this.#closed) return Promise.reject(new StoreUnavailable('The store is closing.'))
    if (!urgent && this.#cannotKeepUp) return Promise.reject(new StoreUnavailable('Too many writes are waiting.'))
    return new Promise<O>((resolve, reject) => {
      const unit: Unit = {
        operation: operation as Operation<unknown, unknown>,
        input,
        resolve: resolve as (outcome: unknown) => void,
        reject,
      }
      if (urgent) this.#waiting.unshift(unit)
      else this.#waiting.push(unit)
      this.#working ??= this.#work()
    })
  }

  /** Resolves when everything accepted so far is settled. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#working
  }

  get #cannotKeepUp(): boolean {
    return this.#waiting.length >= MAX_WAITING || this.#monotonicNow() - this.#commitBegunAt > STALLED_AFTER_MS
  }

  async #work(): Promise<void> {
    do {
      // Let all that is ready to run in this turn of the event loop add its units first.
      await new Promise(resolve => setImmediate(resolve))
      this.#commitBegunAt = this.#monotonicNow()
      await this.#settle(this.#waiting.splice(0, MAX_UNITS_PER_COMMIT))
      this.#commitBegunAt = Number.POSITIVE_INFINITY
    } while (this.#waiting.length > 0)
    this.#working = null
  }

  async #settle(units: readonly Unit[], conflicts = 0): Promise<void> {
    try {
      const settlements = await this.#commit(units)
      for (const settle of settlements) settle()
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

  /** @returns what to do once the caller may know */
  async #commit(units: readonly Unit[]): Promise<(() => void)[]> {
    const { autocommit } = this.#backend
    const { operation } = units[0]!
    if (autocommit !== null && operation.runAlone && units.every(unit => unit.operation === operation)) {
      return settlementsOf(
        units,
        await operation.runAlone(
          autocommit,
          units.map(unit => unit.input),
        ),
      )
    }
    const tx = await this.#backend.begin()
    const settlements: (() => void)[] = []
    try {
      for (const group of arrange(units)) settlements.push(...(await this.#run(tx, group)))
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
    return settlements
  }

  async #run(tx: Transaction, { operation, units }: Group): Promise<(() => void)[]> {
    const settlements: (() => void)[] = []
    let granted = units
    if (operation.lease !== undefined) {
      const leaseOf = (unit: Unit) => operation.lease!(unit.input)
      const held = await this.#fence.held(tx, units.map(leaseOf))
      granted = []
      for (const unit of units) {
        const lease = leaseOf(unit)
        if (held.has(leaseKey(lease))) granted.push(unit)
        else settlements.push(() => unit.reject(new LeaseLost(lease.instanceId)))
      }
      if (granted.length === 0) return settlements
    }
    const outcomes = await operation.run(
      tx,
      granted.map(unit => unit.input),
    )
    return settlements.concat(settlementsOf(granted, outcomes))
  }
}

function settlementsOf(units: readonly Unit[], outcomes: readonly unknown[]): (() => void)[] {
  return units.map((unit, index) => () => unit.resolve(outcomes[index]))
}
