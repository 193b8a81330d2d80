import { userOf } from '../baileys/addresses.ts'

/** Numbers that exist with and without a digit after the code of country or area: Brazil, Mexico, Argentina. */
const OPTIONAL_DIGITS = [/^(55\d\d)9(\d{8})$/, /^(52)1(\d{10})$/, /^(54)9(\d{10})$/]

/**
 * The same for every spelling of a number, whichever WhatsApp knows it by, and for the address that it leads to. So the
 * order holds before the number is looked up. Two people whose numbers differ in that digit alone wait for each other.
 * @param to a recipient as the caller wrote it, or an address
 */
export function chatKeyOf(to: string): string {
  if (to.endsWith('@g.us') || to.endsWith('lid')) return to
  const number = userOf(to) ?? to
  for (const pattern of OPTIONAL_DIGITS) {
    const [, before, after] = pattern.exec(number) ?? []
    if (before !== undefined && after !== undefined) return before + after
  }
  return number
}
