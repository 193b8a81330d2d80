import type { Flavour } from './flavour.ts'

/**
 * Lets nodes with different settings work beside one another: a retry says when its attempt failed, on the clock of `due_at`,
 * so that its whole delay is known; a node says whether it runs sandbox instances.
 */
export function nodesDiffer({ integer }: Flavour): string[] {
  return [
    `alter table deliveries add column failed_at ${integer}`,
    `alter table nodes add column sandbox ${integer} not null default 1`,
  ]
}
