import type { Flavour } from '../../flavour.ts'

/** The proxies of instances. They are in the rows of connections, which their owners read every few seconds anyway. */
export function proxies({ blob }: Flavour): string[] {
  return [`alter table connections add column sealed_proxy ${blob}`]
}
