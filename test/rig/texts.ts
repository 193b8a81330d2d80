import type { Random } from './random.ts'

type Range = readonly [least: number, most: number]

/** Of what contacts write, this share is long, where WhatsApp makes it hard. */
const LONG = 0.06
/** UTF-16 units: around the most that an event carries, and beyond what fits into other limits (256 KiB) in bytes. */
const AROUND_AN_EVENT: Range = [65_500, 65_540]
const BEYOND_AN_EVENT: Range = [65_541, 120_000]
const VERY_LONG: Range = [270_000, 600_000]
/** One to four bytes each in UTF-8; the last is two UTF-16 units. */
const SIGNS = ['a', 'é', '中', '🕊'] as const
const LINE_UNITS = 61

/** The first line is unlike that of any other text; a long text has more of them. */
export function firstLineOf(text: string): string {
  const end = text.indexOf('\n')
  return end === -1 ? text : text.slice(0, end)
}

/** Mostly the line alone. */
export function lengthen(line: string, random: Random): string {
  if (random.next() >= LONG) return line
  const [least, most] = random.pick([AROUND_AN_EVENT, BEYOND_AN_EVENT, VERY_LONG, VERY_LONG])
  return textOf(line, random.integer(least, most), random)
}

/** A text of so many UTF-16 units whose lines differ, so that a missing or repeated piece shows. */
function textOf(line: string, units: number, random: Random): string {
  const lines = [line]
  for (let length = line.length, n = 0; length < units; n += 1) {
    const next = `${n} ${random.pick(SIGNS).repeat(LINE_UNITS)}`
    lines.push(next)
    length += next.length + 1
  }
  return withoutHalfASign(lines.join('\n').slice(0, units))
}

function withoutHalfASign(text: string): string {
  return text.isWellFormed() ? text : text.slice(0, -1)
}
