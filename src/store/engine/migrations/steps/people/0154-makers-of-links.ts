import type { Flavour } from '../../flavour.ts'

/** The accounts that created the open invitation of another account, and a linking link. */
export function makersOfLinks({ id }: Flavour): string[] {
  return [`alter table accounts add column invited_by ${id}`, `alter table handouts add column created_by ${id}`]
}
