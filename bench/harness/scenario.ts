import type { BenchDatabase } from './databases.ts'
import type { Figure, StoreKind } from './figure.ts'

/** The input of a scenario for one run on one kind of store. */
export interface Bench {
  store: StoreKind
  /** Fewer rounds and smaller sizes. Checks that the scenario runs; do not quote its results. */
  quick: boolean
  /** More and longer rounds. */
  long: boolean
  /** Overrides how long the scenario sustains a load. */
  seconds?: number
  /** Overrides the scenario's number of instances. */
  instances?: number
  /** An empty database, dropped when the scenario ends. */
  createDatabase(): Promise<BenchDatabase>
  say(line: string): void
}

export interface Scenario {
  name: string
  stores: readonly StoreKind[]
  /** Too long for a complete run: it runs only if `--only` names it. */
  onlyIfNamed?: boolean
  /** @throws if the measurement failed */
  measure(bench: Bench, cleanUp: AsyncDisposableStack): Promise<Figure[]>
}
