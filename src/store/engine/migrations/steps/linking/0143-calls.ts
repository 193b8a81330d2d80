import type { Flavour } from '../../flavour.ts'

/** What happens to calls. In the row of the connection, like the proxy. */
export function calls({ integer }: Flavour): string[] {
  return [
    `alter table connections add column rejects_calls ${integer}`,
    'alter table connections add column call_text text',
  ]
}
