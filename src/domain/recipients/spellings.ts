/** Brazil, Mexico, Argentina: the same number may be written with or without a digit after the country or area code. */
const OPTIONAL_DIGITS = [
  { long: /^(55\d\d)9(\d{8})$/, short: /^(55\d\d)(\d{8})$/, digit: '9' },
  { long: /^(52)1(\d{10})$/, short: /^(52)(\d{10})$/, digit: '1' },
  { long: /^(54)9(\d{10})$/, short: /^(54)(\d{10})$/, digit: '9' },
] as const

/** The number without the optional digit. Equal for all spellings of a number, and for a few pairs of different numbers. */
export function shortSpelling(number: string): string {
  for (const { long } of OPTIONAL_DIGITS) if (long.test(number)) return number.replace(long, '$1$2')
  return number
}

/** The other spelling of the number, if it has one. It may also be the number of somebody else. */
export function otherSpelling(number: string): string | null {
  const short = shortSpelling(number)
  if (short !== number) return short
  for (const { short: pattern, digit } of OPTIONAL_DIGITS) {
    const [, before, after] = pattern.exec(number) ?? []
    if (before !== undefined && after !== undefined) return before + digit + after
  }
  return null
}
