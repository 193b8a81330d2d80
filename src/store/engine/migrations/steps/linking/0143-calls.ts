import type { Flavour } from '../../flavour.ts'

/** Whether calls are rejected, and with which text. The columns are in `connections`, like the proxy. */
export function calls({ integer }: Flavour): string[] {
  return [
    `alter table connections add column rejects_calls ${integer}`,
    'alter table connections add column call_text text',
  ]
}
