import type { BenchDatabase } from './databases.ts'
import type { Figure, StoreKind } from './figure.ts'

/** The input of a scenario for one run on one kind of store. */
export interface Bench {
  store: StoreKind
  /** Fewer rounds and smaller sizes. Checks that the scenario runs; do not quote its results. */
  quick: boolean
  /** More and longer rounds. */
  long: boolean
  /** How long a load is sustained, in place of the scenario's own. */
  seconds?: number
  /** The number of instances, in place of the scenario's own. */
  instances?: number
  /** An empty database, dropped when the scenario ends. */
  createDatabase(): Promise<BenchDatabase>
  say(line: string): void
}

export interface Scenario {
  name: string
  stores: readonly StoreKind[]
  /** Too long for a run of everything: it runs only if it is named with `--only`. */
  onlyIfNamed?: boolean
  /** @throws if the measurement failed */
  measure(bench: Bench, cleanUp: AsyncDisposableStack): Promise<Figure[]>
}
