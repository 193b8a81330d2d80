import type { Sealing } from '../encryption/sealing.ts'
import type { LocalHints } from '../hints.ts'
import type { Session } from './backend.ts'
import type { Operation } from './operation.ts'
import type { Statements } from './statement.ts'
import type { Traces } from './traces.ts'

/** Reads committed data. Each query sees one consistent state. @throws StoreUnavailable if the database cannot be reached */
export interface Reader extends Session {
  /** Resolves when everything read so far survives a power failure. For answers that others rely on, such as cursors. */
  untilSynced(): Promise<void>
}

/** The dependencies that all subjects of the store share. */
export interface Core {
  readonly statements: Statements
  readonly reader: Reader
  readonly sealing: Sealing
  readonly hints: LocalHints
  readonly traces: Traces
  /** Resolves after the commit. */
  write<I, O>(operation: Operation<I, O>, input: I): Promise<O>
}
