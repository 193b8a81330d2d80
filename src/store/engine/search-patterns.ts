import { fold } from '../../kit/fold.ts'

/** Searches compare only this many UTF-16 units of a name. WhatsApp's own limit for a group's subject is 100. */
const MAX_SEARCHED_UNITS = 200

/**
 * The patterns of LIKE for a search: for folded text, for folded text that is stored as JSON, and for digits. People
 * may write a number with spaces and signs (`+55 11 …`).
 */
export function searchPatterns(search: string): { words: string; encoded: string; number: string } {
  // SQLite reads a pattern up to its first U+0000. No text contains one.
  const words = containing(fold(search).replaceAll('\0', '\uFFFD'))
  const encoded = containing(fold(encode(search)))
  const digits = /^[\d\s().+-]+$/.test(search) ? search.replace(/\D/g, '') : ''
  return { words, encoded, number: digits === '' ? words : containing(digits) }
}

/** `%` and `_` are literals. */
function containing(text: string): string {
  return `%${text.replace(/[\\%_]/g, '\\$&')}%`
}

/** The form of a name that is stored for searches. JSON's escapes replace characters that PostgreSQL cannot store. */
export function searchedAs(text: string): string {
  return fold(encode(text.slice(0, MAX_SEARCHED_UNITS)))
    .slice(0, MAX_SEARCHED_UNITS)
    .toWellFormed()
}

/** As a JSON string, without the quotes around it. */
function encode(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}
