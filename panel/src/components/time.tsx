import { useEffect, useState, useSyncExternalStore } from 'react'
import { serverNow } from '../api/server-clock.ts'
import { useLanguage } from '../i18n/i18n.tsx'
import { useTimeZone } from '../text/time-zone.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** A time in the zone that the reader chose, with the exact UTC on hover. */
export function Time({ at, seconds = true }: { at: string; seconds?: boolean }) {
  const { language } = useLanguage()
  const timeZone = useTimeZone()
  const today = useSyncExternalStore(onMinute, () => dayOf(serverNow(), timeZone))
  const date = new Date(at)
  const day = dayOf(date.getTime(), timeZone)
  const text = date.toLocaleString(language, {
    timeZone,
    ...(day === today ? {} : { day: 'numeric', month: 'short' }),
    ...(yearOf(day) === yearOf(today) ? {} : { year: 'numeric' }),
    hour: '2-digit',
    hourCycle: 'h23',
    minute: '2-digit',
    ...(seconds && { second: '2-digit' }),
  })
  return (
    <time dateTime={at} title={utc(at)}>
      {text}
    </time>
  )
}

const minuteListeners = new Set<() => void>()
let minutes: ReturnType<typeof setInterval> | undefined

/** One timer for all times on the page. */
function onMinute(listener: () => void): () => void {
  minuteListeners.add(listener)
  minutes ??= setInterval(() => {
    for (const each of minuteListeners) each()
  }, MINUTE_MS)
  return () => {
    minuteListeners.delete(listener)
    if (minuteListeners.size > 0) return
    clearInterval(minutes)
    minutes = undefined
  }
}

/** The day in a zone, as `month/day/year`. */
function dayOf(at: number, timeZone: string | undefined): string {
  return new Date(at).toLocaleDateString('en', { timeZone })
}

function yearOf(day: string): string | undefined {
  return day.split('/')[2]
}

/** A relative time that keeps itself current. */
export function Ago({ at }: { at: string }) {
  const { language } = useLanguage()
  const now = useNow(1_000)
  return (
    // Keeps screen readers from announcing every update, for example in an alert.
    <time dateTime={at} title={utc(at)} aria-live="off">
      {relative(Date.parse(at) - now, language)}
    </time>
  )
}

export function utc(at: string): string {
  return `${at.replace('T', ' ').replace('Z', '')} UTC`
}

/** The service's current time, updated every `everyMs`. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(serverNow)
  useEffect(() => {
    const timer = setInterval(() => setNow(serverNow()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return now
}

function relative(ms: number, language: string): string {
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' })
  const size = Math.abs(ms)
  if (size < MINUTE_MS) return format.format(Math.trunc(ms / 1000), 'second')
  if (size < HOUR_MS) return format.format(Math.trunc(ms / MINUTE_MS), 'minute')
  if (size < DAY_MS) return format.format(Math.trunc(ms / HOUR_MS), 'hour')
  return format.format(Math.trunc(ms / DAY_MS), 'day')
}

/** A number with one decimal place. */
export function oneDecimal(value: number, language: string): string {
  return value.toLocaleString(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 })
}

/** An amount in two units. The larger unit is 60 of the smaller. */
function inTwo(amount: number, larger: string, smaller: string): string {
  const rest = amount % 60
  return `${Math.floor(amount / 60)} ${larger}${rest === 0 ? '' : ` ${rest} ${smaller}`}`
}

export function duration(ms: number, language: string): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${oneDecimal(ms / 1000, language)} s`
  if (ms < MINUTE_MS) return `${Math.round(ms / 1000)} s`
  if (ms < HOUR_MS) return inTwo(Math.round(ms / 1000), 'min', 's')
  return inTwo(Math.round(ms / MINUTE_MS), 'h', 'min')
}
