/** Text as searches compare it: lower case, without accents. */
export function fold(text: string): string {
  return text.toLowerCase().normalize('NFD').replace(/\p{M}/gu, '')
}

/** The code points that contain all combining marks (`\p{M}`). */
const RANGES_WITH_MARKS = [
  [0x300, 0x1ffff],
  [0xe0100, 0xe01ef],
] as const

/** The combining marks as a class of PostgreSQL's regular expressions, which do not know `\p{M}`. */
export const MARKS: string = marks()

function marks(): string {
  let ranges = ''
  for (const [first, last] of RANGES_WITH_MARKS) {
    let start: number | null = null
    for (let code = first; code <= last + 1; code += 1) {
      const isMark = code <= last && /\p{M}/u.test(String.fromCodePoint(code))
      if (isMark) start ??= code
      else if (start !== null) {
        ranges += `${escaped(start)}-${escaped(code - 1)}`
        start = null
      }
    }
  }
  return `[${ranges}]`
}

function escaped(code: number): string {
  return `\\U${code.toString(16).padStart(8, '0')}`
}
