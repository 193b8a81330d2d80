import type { Flavour } from '../../flavour.ts'

/** The proxies of instances. In the row of the connection, which its owner reads every few seconds anyway. */
export function proxies({ blob }: Flavour): string[] {
  return [`alter table connections add column sealed_proxy ${blob}`]
}
