import type { Sealing } from '../encryption/sealing.ts'
import type { LocalHints } from '../hints.ts'
import type { Operation } from './operation.ts'
import type { Reader } from './reader.ts'
import type { Statements } from './statement.ts'
import type { Traces } from './traces.ts'

/** The dependencies that all subjects of the store share. */
export interface Core {
  readonly statements: Statements
  /** Reads committed data. Each query sees one consistent state. */
  readonly reader: Reader
  readonly sealing: Sealing
  readonly hints: LocalHints
  readonly traces: Traces
  /** Resolves after the commit. */
  write<I, O>(operation: Operation<I, O>, input: I): Promise<O>
}
