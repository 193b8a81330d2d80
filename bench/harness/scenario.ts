import type { BenchDatabase } from './databases.ts'
import type { Figure, StoreKind } from './figure.ts'

/** The input of a scenario for one run on one kind of store. */
export interface Bench {
  store: StoreKind
  /** Fewer rounds and smaller sizes. Checks that it runs; the results are not to be quoted. */
  quick: boolean
  /** An empty database, dropped when the scenario ends. */
  createDatabase(): Promise<BenchDatabase>
  say(line: string): void
}

export interface Scenario {
  name: string
  stores: readonly StoreKind[]
  /** @throws if the measurement failed */
  measure(bench: Bench, cleanUp: AsyncDisposableStack): Promise<Figure[]>
}
