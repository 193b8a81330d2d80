import type { Flavour } from '../flavour.ts'

/**
 * Supports nodes with different settings. A retry stores when its attempt failed, by the same clock as `due_at`: the
 * difference between the two is the full delay. A node stores whether it runs sandbox instances.
 */
export function nodesDiffer({ integer }: Flavour): string[] {
  return [
    `alter table deliveries add column failed_at ${integer}`,
    `alter table nodes add column sandbox ${integer} not null default 1`,
  ]
}
