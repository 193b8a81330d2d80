import { fold } from '../../kit/fold.ts'

/** The patterns of LIKE for a search: for folded text, and for digits. A number may be written as people do (`+55 11 …`). */
export function searchPatterns(search: string): { words: string; number: string } {
  // SQLite reads a pattern up to its first U+0000. No name or text contains one.
  const words = containing(fold(search).replaceAll('\0', '\uFFFD'))
  const digits = /^[\d\s().+-]+$/.test(search) ? search.replace(/\D/g, '') : ''
  return { words, number: digits === '' ? words : containing(digits) }
}

/** `%` and `_` are literals. */
function containing(text: string): string {
  return `%${text.replace(/[\\%_]/g, '\\$&')}%`
}
