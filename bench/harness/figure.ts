import { median, spread } from './statistics.ts'

export type StoreKind = 'sqlite' | 'postgres'

export type Unit = 'per second' | 'MB' | 'ms' | 's'

/** The target of a ratio, or a limit of our own value; shown, not enforced. */
export type Floor =
  | { kind: 'at least'; ratio: number }
  | { kind: 'at most'; ratio: number }
  | { kind: 'limit'; value: number }

/** One measured ratio with all its rounds, or a plain number if there is no reference. */
export interface Figure {
  name: string
  store: StoreKind
  unit: Unit
  reference: { what: string; rounds: number[]; median: number } | null
  ours: { rounds: number[]; median: number }
  ratio: number | null
  /** The spread of the reference over its rounds, which is the noise of the machine. */
  noise: number | null
  floor: Floor | null
  met: boolean | null
  notes: string[]
}

export interface Measured {
  name: string
  store: StoreKind
  unit: Unit
  /** The reference in a few words. */
  against: string
  reference: number[]
  ours: number[]
  floor?: Floor
  notes?: string[]
}

export function figureOf({ name, store, unit, against, reference, ours, floor, notes = [] }: Measured): Figure {
  const ratio = median(ours) / median(reference)
  return {
    name,
    store,
    unit,
    reference: { what: against, rounds: reference, median: median(reference) },
    ours: { rounds: ours, median: median(ours) },
    ratio,
    noise: spread(reference),
    floor: floor ?? null,
    met: floor === undefined ? null : isMet(floor, ratio, median(ours)),
    notes,
  }
}

function isMet(floor: Floor, ratio: number, ours: number): boolean {
  if (floor.kind === 'limit') return ours <= floor.value
  return floor.kind === 'at least' ? ratio >= floor.ratio : ratio <= floor.ratio
}

/** A number with or without a limit. */
export function plainFigure(
  plain: Pick<Figure, 'name' | 'store' | 'unit'> & { value: number; atMost?: number; notes?: string[] },
): Figure {
  const { name, store, unit, value, atMost, notes = [] } = plain
  return {
    name,
    store,
    unit,
    reference: atMost === undefined ? null : { what: 'the limit', rounds: [atMost], median: atMost },
    ours: { rounds: [value], median: value },
    ratio: atMost === undefined ? null : value / atMost,
    noise: null,
    floor: atMost === undefined ? null : { kind: 'at most', ratio: 1 },
    met: atMost === undefined ? null : value <= atMost,
    notes,
  }
}

/** Alternates the reference and Pombal, so changes in machine load affect both. */
export async function alternate(
  rounds: number,
  measureReference: () => Promise<number>,
  measureOurs: () => Promise<number>,
  say: (line: string) => void,
): Promise<{ reference: number[]; ours: number[] }> {
  const reference: number[] = []
  const ours: number[] = []
  for (let round = 1; round <= rounds; round += 1) {
    reference.push(await measureReference())
    ours.push(await measureOurs())
    say(`round ${round}/${rounds}: reference ${short(reference.at(-1)!)}, ours ${short(ours.at(-1)!)}`)
  }
  return { reference, ours }
}

/** Rounds to three or four digits; further digits are noise. */
export function short(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)
}
