import { describe, expect, test } from 'vitest'
import { ASSUMED_RESTRICTION_MS, afterNotice, afterRefusal, isInForce } from './restriction.ts'

const NOW = 1_700_000_000_000
const REPORTED = { since: NOW - 1, until: NOW + 10 * ASSUMED_RESTRICTION_MS, reportedByWhatsapp: true }
const ASSUMED = { since: NOW - 1, until: NOW + 1, reportedByWhatsapp: false }

describe('a message refused with 463', () => {
  test('restricts for the assumed time', () => {
    const restriction = afterRefusal(null, NOW)
    expect(restriction).toEqual({ since: NOW, until: NOW + ASSUMED_RESTRICTION_MS, reportedByWhatsapp: false })
    expect(isInForce(restriction, restriction.until - 1)).toBe(true)
    expect(isInForce(restriction, restriction.until)).toBe(false)
  })

  test('extends a restriction that would end earlier, and keeps its start', () => {
    expect(afterRefusal(ASSUMED, NOW)).toEqual({ ...afterRefusal(null, NOW), since: ASSUMED.since })
  })

  test('never shortens a restriction whose end WhatsApp reported', () => {
    expect(afterRefusal(REPORTED, NOW)).toEqual(REPORTED)
  })

  test('starts a new restriction when the last one has ended', () => {
    expect(afterRefusal({ ...ASSUMED, until: NOW }, NOW).since).toBe(NOW)
  })
})

describe('a notice', () => {
  test('with an end replaces any earlier restriction', () => {
    const until = NOW + 5
    expect(afterNotice(null, { active: true, until }, NOW)).toEqual({ since: NOW, until, reportedByWhatsapp: true })
    expect(afterNotice(REPORTED, { active: true, until }, NOW)).toEqual({
      since: REPORTED.since,
      until,
      reportedByWhatsapp: true,
    })
    expect(afterNotice(ASSUMED, { active: true, until }, NOW)).toEqual({
      since: ASSUMED.since,
      until,
      reportedByWhatsapp: true,
    })
  })

  test('without an end has the effect of a refusal', () => {
    for (const before of [null, ASSUMED, REPORTED]) {
      expect(afterNotice(before, { active: true, until: null }, NOW)).toEqual(afterRefusal(before, NOW))
    }
  })

  test('of no restriction ends a reported restriction, but not an assumed one', () => {
    expect(afterNotice(REPORTED, { active: false, until: null }, NOW)).toBeNull()
    expect(afterNotice(ASSUMED, { active: false, until: null }, NOW)).toEqual(ASSUMED)
    expect(afterNotice(null, { active: false, until: null }, NOW)).toBeNull()
  })

  test('with an end in the past lifts the restriction', () => {
    expect(afterNotice(REPORTED, { active: true, until: NOW }, NOW)).toBeNull()
  })
})
