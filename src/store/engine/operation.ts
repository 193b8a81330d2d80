import type { InstanceId } from '../../domain/ids.ts'
import type { MessageStep } from '../../domain/message.ts'
import type { Lease } from '../leases/leases.ts'
import type { Session, Transaction } from './backend.ts'
import type { RowsStatement, Statements } from './statement.ts'

/** A kind of write. It processes many inputs at once, so that a batch needs few statements. */
export interface Operation<I, O> {
  readonly name: string
  instanceId(input: I): InstanceId
  /** The items that the input changes. Two inputs of one instance with a key in common never share a run. */
  keys?(input: I): readonly string[]
  /** Set for an owner's writes. Inputs whose lease was lost never reach `run`. */
  lease?(input: I): Lease
  /** Processes one input at a time and may do anything, including moving leases. */
  readonly isRare?: boolean
  /**
   * Its result is right whether it runs before or after other operations of its instance, or at the same time, apart from rare
   * ones: it changes nothing that they read or change, and what it reads of theirs may be older.
   */
  readonly isIndependent?: boolean
  /**
   * On PostgreSQL, operations with the same value commit on a connection of their own, so they never wait for the commits of other
   * operations. On SQLite it has no effect.
   */
  readonly connection?: 'calls' | 'admission' | 'leases'
  /** A power failure may undo it, so a commit that contains only such units does not wait for the disk. */
  readonly mayBeUndone?: boolean
  /** Runs after the others of its commit, because it takes a lock that must be the transaction's last one. */
  readonly isLast?: boolean
  /** Whether this outcome means that something changed, for the audit. Default: any outcome except null and false. */
  changes?(outcome: O): boolean
  /** The audit ignores it, because it only prepares a change, or changes nothing that the audit records. */
  readonly isNoChange?: boolean
  /** The effects of this outcome on messages, for the metrics. */
  steps?(input: I, outcome: O): readonly MessageStep[]
  /** Goes to the front of the queue, and is not refused because of overload. */
  readonly urgent?: boolean
  /** @returns one outcome per input, in the same order; an empty list if the inputs have no outcomes */
  run(tx: Transaction, inputs: readonly I[]): Promise<O[]>
  /**
   * An alternative to `run` for a single statement that needs no transaction. Its inputs may have keys in common. On PostgreSQL
   * it shares no commit with other operations: its locks then end with the statement, even if this node freezes.
   */
  runAlone?(session: Session, inputs: readonly I[]): Promise<O[]>
}

/** The fields of every owner's write: it belongs to the lease's instance. */
export const fenced = { instanceId: leasedInstance, lease: leaseOf } as const

function leasedInstance({ lease }: { lease: Lease }): InstanceId {
  return lease.instanceId
}

function leaseOf({ lease }: { lease: Lease }): Lease {
  return lease
}

/** Whether a write of these columns would change the row. */
export function differs(row: object, set: object): boolean {
  const columns: Partial<Record<string, unknown>> = { ...row }
  return Object.entries(set).some(([name, value]) => columns[name] !== value)
}

/** `Operation.changes`, or false for `Operation.isNoChange`. */
type Changes<O> = ((outcome: O) => boolean) | false

/**
 * An outcome that is a string or has a `kind` can be a refusal, so its operation must say which outcomes are changes.
 */
type ChangesArgument<O> = [Extract<O, string | { kind: string }>] extends [never]
  ? [changes?: Changes<O>]
  : [changes: Changes<O>]

/** An operation that processes its inputs one by one, because it is rare. */
export function oneByOne<I, O>(
  name: string,
  instanceId: (input: I) => InstanceId,
  run: (tx: Transaction, input: I) => Promise<O>,
  ...[changes]: ChangesArgument<O>
): Operation<I, O> {
  return {
    ...rare(name, instanceId, run),
    ...(changes && { changes }),
    ...(changes === false && { isNoChange: true }),
  }
}

/** The same for an owner's write, which the audit ignores. */
export function fencedOneByOne<I extends { lease: Lease }, O>(
  name: string,
  run: (tx: Transaction, input: I) => Promise<O>,
): Operation<I, O> {
  return { ...rare(name, leasedInstance, run), lease: leaseOf }
}

function rare<I, O>(
  name: string,
  instanceId: (input: I) => InstanceId,
  run: (tx: Transaction, input: I) => Promise<O>,
): Operation<I, O> {
  return {
    name,
    instanceId,
    isRare: true,
    async run(tx, inputs) {
      const outcomes: O[] = []
      for (const input of inputs) outcomes.push(await run(tx, input))
      return outcomes
    },
  }
}

/** One call of an operation that waits for its commit. */
export interface Unit {
  readonly operation: Operation<unknown, unknown>
  readonly input: unknown
  readonly instanceId: InstanceId
  readonly lease: Lease | undefined
  /** Null if the unit need not wait for earlier turns of its instance. */
  readonly turn: Turn | null
  resolve(outcome: unknown): void
  reject(error: unknown): void
}

/**
 * Consecutive rare or consecutive independent units of an instance. Its units may start when the earlier turns of the
 * instance have ended, so that rare and independent units keep their order in different commits.
 */
export interface Turn {
  readonly isRare: boolean
  /** How many of its units have not ended. */
  units: number
}

/** Finds the leases that are still held, and locks them until the transaction ends. */
export class Fence {
  readonly #find: RowsStatement<{ instance_id: string; owner: string; epoch: number }, LeaseRow>

  constructor(statements: Statements) {
    const columns = { instance_id: 'text', owner: 'text', epoch: 'integer' } as const
    // A renewal changes no key, so this lock does not block it. A takeover locks `for update`, so it skips the lease.
    this.#find = statements.find('leases', columns, ['instance_id', 'owner', 'epoch'], { lock: 'key share' })
  }

  /** @returns the units that may run: those without a lease, and those whose lease is still held */
  async allowed(tx: Transaction, units: readonly Unit[]): Promise<ReadonlySet<Unit>> {
    const leases = new Map<string, { instance_id: string; owner: string; epoch: number }>()
    for (const { lease } of units) {
      if (lease === undefined) continue
      const { instanceId, owner, epoch } = lease
      leases.set(`${instanceId}/${epoch}/${owner}`, { instance_id: instanceId, owner, epoch })
    }
    if (leases.size === 0) return new Set(units)
    const held = new Map<InstanceId, LeaseRow>()
    for (const row of await tx.each(this.#find, [...leases.values()])) held.set(row.instance_id, row)
    const allowed = new Set<Unit>()
    for (const unit of units) {
      const { lease } = unit
      const row = lease && held.get(lease.instanceId)
      if (lease === undefined || (row?.owner === lease.owner && row.epoch === lease.epoch)) allowed.add(unit)
    }
    return allowed
  }
}

interface LeaseRow {
  instance_id: string
  owner: string | null
  epoch: number
}

interface Group {
  readonly operation: Operation<unknown, unknown>
  readonly units: Unit[]
}

/**
 * Groups units by operation. Keeps the order of each instance's units, except that of independent units, and never puts
 * two units with a key in common into the same group. The units of an `isLast` operation are always one group, at the
 * end.
 */
export function arrange(units: readonly Unit[]): Group[] {
  const groups: (Group & { keys: Set<string> })[] = []
  const placeOfInstance = new Map<InstanceId, { rare: number; ordered: number; any: number }>()
  const latestOfOperation = new Map<object, number>()
  const last = new Map<Group['operation'], Group>()
  for (const unit of units) {
    const { operation, input, instanceId } = unit
    if (operation.isLast) {
      const group = last.get(operation) ?? { operation, units: [] }
      last.set(operation, group)
      group.units.push(unit)
      continue
    }
    const { isRare, isIndependent } = operation
    const keys: string[] = []
    for (const key of operation.keys?.(input) ?? []) keys.push(`${instanceId}/${key}`)
    let at = latestOfOperation.get(operation)
    const latest = placeOfInstance.get(instanceId) ?? { rare: 0, ordered: 0, any: 0 }
    const after = isRare ? latest.any : isIndependent ? latest.rare : latest.ordered
    const joins = at !== undefined && at >= after && !keys.some(key => groups[at!]!.keys.has(key))
    if (!joins) at = groups.push({ operation, units: [], keys: new Set() }) - 1
    const group = groups[at!]!
    group.units.push(unit)
    for (const key of keys) group.keys.add(key)
    latest.any = Math.max(latest.any, at!)
    if (!isIndependent) latest.ordered = at!
    if (isRare) latest.rare = at!
    placeOfInstance.set(instanceId, latest)
    latestOfOperation.set(operation, at!)
  }
  return [...groups, ...last.values()]
}
