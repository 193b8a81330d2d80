import { expect, test, vi } from 'vitest'
import { noteServerTime, serverNow } from '../api/server-clock.ts'
import { duration } from './time.tsx'

test('a duration has the decimal separator of the language', () => {
  expect(duration(1_500, 'en')).toBe('1.5 s')
  expect(duration(1_500, 'pt-BR')).toBe('1,5 s')
})

test('the time of the service is known even if the clock of the browser is wrong', () => {
  vi.useFakeTimers({ now: Date.parse('2026-11-27T12:10:00Z') })
  try {
    noteServerTime(new Headers({ date: 'Fri, 27 Nov 2026 12:00:00 GMT' }))
    expect(new Date(serverNow()).toISOString()).toBe('2026-11-27T12:00:00.000Z')
    // The header has no fractions of a second.
    noteServerTime(new Headers({ date: 'Fri, 27 Nov 2026 12:09:59 GMT' }))
    expect(serverNow()).toBe(Date.now())
  } finally {
    vi.useRealTimers()
  }
})
