import { AsyncLocalStorage } from 'node:async_hooks'
import type { Operation } from '../engine/operation.ts'
import type { AuditEntry, AuditNumber, PendingAudit } from './audit.ts'
import type { AuditChain } from './chain.ts'

interface State extends PendingAudit {
  recorded: PendingAudit['recorded']
  /** A write that will record the entry is running, or the call has ended. */
  isTaken: boolean
  /** A write of the call was committed. If it changed nothing, neither did the call. */
  hasWritten: boolean
}

interface AuditedWrite {
  operation: Operation<unknown, unknown>
  input: unknown
  entry: AuditEntry
}

interface AuditedOutcome {
  outcome: unknown
  recorded: AuditNumber | null
}

type Write = <I, O>(operation: Operation<I, O>, input: I) => Promise<O>

/** The write of an entry without a change. */
const NO_CHANGE: Operation<unknown, unknown> = {
  name: 'audit.append',
  instanceId: () => '',
  run: async (_, inputs) => inputs.map(() => true),
}

/** Adds the entry of the current call to the commit of its first change. */
export class AuditedWrites {
  readonly #current = new AsyncLocalStorage<State>()
  readonly #audited: Operation<AuditedWrite, AuditedOutcome>
  readonly #write: Write

  /** @param now milliseconds since 1970 */
  constructor(chain: AuditChain, now: () => number, write: Write) {
    this.#write = write
    this.#audited = {
      name: 'audit.write',
      instanceId: ({ operation, input }) => operation.instanceId(input),
      isRare: true,
      isLast: true,
      async run(tx, writes) {
        const outcomes: unknown[] = []
        for (const { operation, input } of writes) outcomes.push((await operation.run(tx, [input]))[0])
        const changed = writes.flatMap((write, index) => (changes(write.operation, outcomes[index]) ? [index] : []))
        const entries = changed.map(index => ({ entry: writes[index]!.entry, at: now() }))
        const added = await chain.append(tx, entries)
        return outcomes.map((outcome, index) => ({ outcome, recorded: added[changed.indexOf(index)] ?? null }))
      },
    }
  }

  during<T>(entry: AuditEntry, change: (pending: PendingAudit) => T): T {
    const state: State = { entry, recorded: null, isTaken: false, hasWritten: false }
    return this.#current.run(state, () => change(state))
  }

  async finish(pending: PendingAudit, succeeded: boolean): Promise<void> {
    const state = pending as State
    state.isTaken = true
    if (state.recorded === null && !state.hasWritten && succeeded) state.recorded = await this.append(state.entry)
  }

  /**
   * Records an entry without a change. Uses the same operation as changes with an entry, so that a transaction locks
   * the chain only once, after all changes.
   */
  async append(entry: AuditEntry): Promise<AuditNumber> {
    const { recorded } = await this.#write(this.#audited, { operation: NO_CHANGE, input: null, entry })
    return recorded!
  }

  /** Writes together with the entry of the current call, if there is one that is not recorded yet. */
  readonly write: Write = async <I, O>(operation: Operation<I, O>, input: I): Promise<O> => {
    const state = this.#current.getStore()
    const isTaken = state === undefined || state.recorded !== null || state.isTaken
    if (isTaken || operation.lease || operation.isLast || operation.isNoChange) return this.#write(operation, input)
    state.isTaken = true
    try {
      const { entry } = state
      const audited = { operation: operation as Operation<unknown, unknown>, input, entry }
      const { outcome, recorded } = await this.#write(this.#audited, audited)
      state.recorded = recorded
      state.hasWritten = true
      return outcome as O
    } finally {
      state.isTaken = false
    }
  }
}

function changes(operation: Operation<unknown, unknown>, outcome: unknown): boolean {
  return operation.changes?.(outcome) ?? (outcome !== null && outcome !== false)
}
