import type { InstanceId } from '../../domain/ids.ts'
import type { Lease } from '../leases/leases.ts'
import type { Session, Transaction } from './backend.ts'

/** A kind of write, told for many inputs at once so that a busy moment costs few statements. */
export interface Operation<I, O> {
  readonly name: string
  instanceId(input: I): InstanceId
  /** What the input touches: two inputs of one instance with a key in common never share a run. */
  keys(input: I): readonly string[]
  /** Set for what an owner writes: inputs whose lease has moved on never reach `run`. */
  lease?(input: I): Lease
  /** `run` sends all its statements at once and asks nothing in between: what comes after it need not wait for its answers. */
  readonly isOneStep?: boolean
  /** Told for one input at a time, it may do anything; also move leases. */
  readonly isRare?: boolean
  /** Goes before all that waits and is never refused. */
  readonly urgent?: boolean
  /** @returns an outcome for each input, in their order */
  run(tx: Transaction, inputs: readonly I[]): Promise<O[]>
  /** `run`, where it is a single statement that needs no transaction around it, whatever its inputs have in common. */
  runAlone?(session: Session, inputs: readonly I[]): Promise<O[]>
}

/** An operation that is too rare to be told for many at once. */
export function oneByOne<I, O>(
  name: string,
  instanceId: (input: I) => InstanceId,
  run: (tx: Transaction, input: I) => Promise<O>,
): Operation<I, O> {
  return {
    name,
    instanceId,
    keys: () => [],
    isRare: true,
    async run(tx, inputs) {
      const outcomes: O[] = []
      for (const input of inputs) outcomes.push(await run(tx, input))
      return outcomes
    },
  }
}

/** The same for an owner's write. */
export function fencedOneByOne<I extends { lease: Lease }, O>(
  name: string,
  run: (tx: Transaction, input: I) => Promise<O>,
): Operation<I, O> {
  return { ...oneByOne(name, (input: I) => input.lease.instanceId, run), lease: input => input.lease }
}

/** One call of an operation, waiting for its commit. */
export interface Unit {
  readonly operation: Operation<unknown, unknown>
  readonly input: unknown
  resolve(outcome: unknown): void
  reject(error: unknown): void
}

export interface Group {
  readonly operation: Operation<unknown, unknown>
  readonly units: Unit[]
}

/**
 * Puts units of the same operation together, as far as this changes the order of no instance's units, and no two units
 * of a group touch the same thing.
 */
export function arrange(units: readonly Unit[]): Group[] {
  const groups: (Group & { keys: Set<string> })[] = []
  const latestOfInstance = new Map<InstanceId, number>()
  const latestOfOperation = new Map<object, number>()
  for (const unit of units) {
    const { operation, input } = unit
    const instanceId = operation.instanceId(input)
    const keys = operation.keys(input).map(key => `${instanceId}/${key}`)
    let at = latestOfOperation.get(operation)
    const joins =
      at !== undefined && at >= (latestOfInstance.get(instanceId) ?? 0) && !keys.some(key => groups[at!]!.keys.has(key))
    if (!joins) at = groups.push({ operation, units: [], keys: new Set() }) - 1
    const group = groups[at!]!
    group.units.push(unit)
    for (const key of keys) group.keys.add(key)
    latestOfInstance.set(instanceId, at!)
    latestOfOperation.set(operation, at!)
  }
  return groups
}
