import { serverNow } from '../../api/server-clock.ts'

const DAY_MS = 86_400_000

/** Creating a format takes a hundred times as long as using it. */
const formats = new Map<string | undefined, Intl.DateTimeFormat>()

/** The day of a moment in a time zone, as `2026-11-24`. */
export function dayOf(at: string | number, timeZone: string | undefined): string {
  const format = formats.get(timeZone) ?? new Intl.DateTimeFormat('sv', { timeZone })
  formats.set(timeZone, format)
  return format.format(new Date(at))
}

/** The heading above the messages of a day, such as "today". */
export function dayText(at: string, timeZone: string | undefined, language: string): string {
  const days = (Date.parse(dayOf(at, timeZone)) - Date.parse(dayOf(serverNow(), timeZone))) / DAY_MS
  if (days > -2) return new Intl.RelativeTimeFormat(language, { numeric: 'auto' }).format(days, 'day')
  return new Date(at).toLocaleDateString(language, {
    timeZone,
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    year: 'numeric',
  })
}
