import { userOf } from '../baileys/addresses.ts'

/** Brazil, Mexico, Argentina: the same number may be written with or without a digit after the country or area code. */
const OPTIONAL_DIGITS = [/^(55\d\d)9(\d{8})$/, /^(52)1(\d{10})$/, /^(54)9(\d{10})$/]

/**
 * The key of a chat: equal for all spellings of a number and for its address, so the order holds before the number is
 * looked up. Two people whose numbers differ only in the optional digit share a key, and their messages wait for each other.
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
