import type { Random } from './random.ts'

type Range = readonly [least: number, most: number]

/** With network faults: the share of incoming texts that are long. */
const LONG = 0.06
/** In UTF-16 units: around the limit of an event, above it, and above 256 KiB in bytes. */
const AROUND_AN_EVENT: Range = [65_500, 65_540]
const BEYOND_AN_EVENT: Range = [65_541, 120_000]
const VERY_LONG: Range = [270_000, 600_000]
/** One to four bytes in UTF-8. The last one has two UTF-16 units. */
const CHARACTERS = ['a', 'é', '中', '🕊'] as const
const LINE_UNITS = 61

/** The first line of a text, which is unique. */
export function firstLineOf(text: string): string {
  const end = text.indexOf('\n')
  return end === -1 ? text : text.slice(0, end)
}

/** Returns the line, or sometimes a long text that begins with it. */
export function lengthen(line: string, random: Random): string {
  if (random.next() >= LONG) return line
  const [least, most] = random.pick([AROUND_AN_EVENT, BEYOND_AN_EVENT, VERY_LONG, VERY_LONG])
  return textOf(line, random.integer(least, most), random)
}

/** A text of `units` UTF-16 units. Its lines differ, so a missing or repeated part is detected. */
function textOf(line: string, units: number, random: Random): string {
  const lines = [line]
  for (let length = line.length, n = 0; length < units; n += 1) {
    const next = `${n} ${random.pick(CHARACTERS).repeat(LINE_UNITS)}`
    lines.push(next)
    length += next.length + 1
  }
  return withoutLoneSurrogate(lines.join('\n').slice(0, units))
}

function withoutLoneSurrogate(text: string): string {
  return text.isWellFormed() ? text : text.slice(0, -1)
}
