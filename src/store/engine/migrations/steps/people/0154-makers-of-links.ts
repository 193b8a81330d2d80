import type { Flavour } from '../../flavour.ts'

/** The account that created the open invitation of another one. */
export function makersOfLinks({ id }: Flavour): string[] {
  return [`alter table accounts add column invited_by ${id}`]
}
