const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

/** The limits that an operator sets to slow down an instance. Null: no such limit. */
export interface Pace {
  /** Messages within any minute. */
  perMinute: number | null
  /**
   * Recipients on one day who are not contacts. A contact has written to the instance, or has been sent a message that
   * WhatsApp acknowledged.
   */
  newRecipientsPerDay: number | null
  quietHours: QuietHours | null
  /** The time zone of the quiet hours and of the day, by its IANA name. */
  timeZone: string
  /** Whether the recipient sees that the instance is typing before a text arrives. */
  typing: boolean
}

/** In minutes since midnight. If `until` is before `from`, the hours last past midnight. */
export interface QuietHours {
  from: number
  until: number
}

export const NO_PACE: Pace = {
  perMinute: null,
  newRecipientsPerDay: null,
  quietHours: null,
  timeZone: 'UTC',
  typing: false,
}

export function isNoPace({ perMinute, newRecipientsPerDay, quietHours, typing }: Pace): boolean {
  return perMinute === null && newRecipientsPerDay === null && quietHours === null && !typing
}

/** When the quiet hours end; null outside of them. */
export function quietUntil({ quietHours, timeZone }: Pace, now: number): number | null {
  if (quietHours === null) return null
  const { from, until } = quietHours
  const at = sinceMidnight(now, timeZone) / MINUTE_MS
  const isQuiet = from < until ? at >= from && at < until : at >= from || at < until
  return isQuiet ? nextAt(now, timeZone, until) : null
}

/** When the day of this moment began. */
export function dayStart({ timeZone }: Pace, now: number): number {
  return atMidnight(now - sinceMidnight(now, timeZone), timeZone)
}

export function nextDay({ timeZone }: Pace, now: number): number {
  return nextAt(now, timeZone, 0)
}

/** How long a person would type a text of this length: 1 to 8 s. */
export function typingMs(text: string): number {
  return Math.min(1_000 + 30 * text.length, 8_000)
}

/** The next time that the clocks show this minute of the day. */
function nextAt(now: number, timeZone: string, minute: number): number {
  const target = minute * MINUTE_MS
  const waitMs = (target - sinceMidnight(now, timeZone) + DAY_MS) % DAY_MS || DAY_MS
  const found = atTime(now + waitMs, timeZone, target)
  return found > now ? found : now + waitMs
}

function atMidnight(near: number, timeZone: string): number {
  return atTime(near, timeZone, 0)
}

/** Corrects an estimate that is off because daylight saving time began or ended in between. */
function atTime(near: number, timeZone: string, target: number): number {
  const away = (target - sinceMidnight(near, timeZone) + DAY_MS) % DAY_MS
  return near + (away > DAY_MS / 2 ? away - DAY_MS : away)
}

/** Milliseconds since midnight in the time zone. */
function sinceMidnight(now: number, timeZone: string): number {
  let format = formats.get(timeZone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-GB', { timeZone, hourCycle: 'h23', timeStyle: 'medium' })
    formats.set(timeZone, format)
  }
  const [hours = 0, minutes = 0, seconds = 0] = format.format(now).split(':').map(Number)
  return ((hours * 60 + minutes) * 60 + seconds) * 1_000 + (now % 1_000)
}

/** Formatters by time zone. There are a few hundred time zones. */
const formats = new Map<string, Intl.DateTimeFormat>()
