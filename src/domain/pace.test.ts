import { describe, expect, test } from 'vitest'
import { dayStart, NO_PACE, nextDay, quietUntil, typingMs } from './pace.ts'

const at = (text: string) => Date.parse(text)
const pace = (from: number, until: number, timeZone = 'UTC') => ({
  ...NO_PACE,
  quietHours: { from: from * 60, until: until * 60 },
  timeZone,
})

describe('quiet hours', () => {
  test('end at their minute, also over midnight', () => {
    expect(quietUntil(pace(22, 7), at('2026-11-24T23:30:00Z'))).toBe(at('2026-11-25T07:00:00Z'))
    expect(quietUntil(pace(22, 7), at('2026-11-24T06:59:59.999Z'))).toBe(at('2026-11-24T07:00:00Z'))
    expect(quietUntil(pace(12, 13), at('2026-11-24T12:00:00Z'))).toBe(at('2026-11-24T13:00:00Z'))
  })

  test('do not apply outside of them', () => {
    expect(quietUntil(pace(22, 7), at('2026-11-24T07:00:00Z'))).toBe(null)
    expect(quietUntil(pace(22, 7), at('2026-11-24T21:59:59Z'))).toBe(null)
    expect(quietUntil(NO_PACE, at('2026-11-24T12:00:00Z'))).toBe(null)
  })

  test('follow the clocks of the time zone, even in the night when they change', () => {
    expect(quietUntil(pace(22, 7, 'America/Sao_Paulo'), at('2026-11-24T01:00:00Z'))).toBe(at('2026-11-24T10:00:00Z'))
    // In Berlin the clocks are set back in this night.
    expect(quietUntil(pace(22, 7, 'Europe/Berlin'), at('2026-10-24T21:00:00Z'))).toBe(at('2026-10-25T06:00:00Z'))
    // In this night they are set forward.
    expect(quietUntil(pace(22, 7, 'Europe/Berlin'), at('2026-03-28T22:00:00Z'))).toBe(at('2026-03-29T05:00:00Z'))
  })
})

test('a day begins and ends at midnight of the time zone', () => {
  const berlin = { ...NO_PACE, timeZone: 'Europe/Berlin' }
  expect(dayStart(berlin, at('2026-10-25T12:00:00Z'))).toBe(at('2026-10-24T22:00:00Z'))
  expect(nextDay(berlin, at('2026-10-25T12:00:00Z'))).toBe(at('2026-10-25T23:00:00Z'))
  expect(nextDay(NO_PACE, at('2026-11-24T00:00:00Z'))).toBe(at('2026-11-25T00:00:00Z'))
})

test('longer texts take longer to type, but at most 8 s', () => {
  expect(typingMs('oi')).toBeLessThan(typingMs('a longer text'))
  expect(typingMs('x'.repeat(65_536))).toBe(8_000)
})
