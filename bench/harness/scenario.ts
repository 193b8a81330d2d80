import type { BenchDatabase } from './databases.ts'
import type { Figure, StoreKind } from './figure.ts'

/** What a scenario is given for one run on one kind of store. */
export interface Bench {
  store: StoreKind
  /** Fewer rounds and smaller sizes: to see whether it runs, not to be quoted. */
  quick: boolean
  /** An empty one; dropped when the scenario is over. */
  createDatabase(): Promise<BenchDatabase>
  /** A line of progress. */
  say(line: string): void
}

export interface Scenario {
  name: string
  stores: readonly StoreKind[]
  /** @throws when the measurement could not be made */
  measure(bench: Bench, cleanUp: AsyncDisposableStack): Promise<Figure[]>
}
