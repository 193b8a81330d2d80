import { useSyncExternalStore } from 'react'
import { readStored, store } from '../storage.ts'

const STORED_AS = 'pombal.timeZone'
const MINUTE_MS = 60_000
const listeners = new Set<() => void>()
let chosen = readChosen()

/** The zone of the browser. */
export function ownZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone
}

export function listZones(): readonly string[] {
  return [...new Set(['UTC', ...Intl.supportedValuesOf('timeZone')])]
}

/** The zone that the reader chose for all times; undefined for the browser's. */
export function useTimeZone(): string | undefined {
  return useSyncExternalStore(
    listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => chosen,
  )
}

export function chooseTimeZone(zone: string | undefined): void {
  chosen = zone
  store('localStorage', STORED_AS, zone ?? null)
  for (const listener of listeners) listener()
}

function readChosen(): string | undefined {
  const zone = readStored('localStorage', STORED_AS)
  if (zone === null) return undefined
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return zone
  } catch {
    return undefined
  }
}

/** The clock of a zone as the text of a date field: `2026-11-23T14:05`. Empty if there is no such moment. */
export function toZoned(iso: string | undefined, zone: string | undefined): string {
  const at = Date.parse(iso ?? '')
  return Number.isNaN(at) ? '' : new Date(at + offsetMs(at, zone)).toISOString().slice(0, 16)
}

/** The moment at which the zone's clock shows the text of a date field. */
export function fromZoned(local: string, zone: string | undefined): string | undefined {
  const asUtc = Date.parse(`${local}Z`)
  if (Number.isNaN(asUtc)) return undefined
  // The offset at the result, which differs from the first guess near a change of the clocks.
  const guess = asUtc - offsetMs(asUtc, zone)
  return new Date(asUtc - offsetMs(guess, zone)).toISOString()
}

function offsetMs(at: number, timeZone: string | undefined): number {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  })
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  const { year, month, day, hour, minute } = parts as Record<'year' | 'month' | 'day' | 'hour' | 'minute', number>
  // `Date.UTC` would take a year below 100, which a field has while a year is being typed, for one of the 20th century.
  const shown = new Date(Date.UTC(2000, 0, 1, hour, minute)).setUTCFullYear(year, month - 1, day)
  return shown - Math.floor(at / MINUTE_MS) * MINUTE_MS
}
