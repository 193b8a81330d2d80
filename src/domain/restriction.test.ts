import { describe, expect, test } from 'vitest'
import { afterNotice, afterRefusal, isInForce, UNTOLD_RESTRICTION_MS } from './restriction.ts'

const NOW = 1_700_000_000_000
const TOLD = { since: NOW - 1, until: NOW + 10 * UNTOLD_RESTRICTION_MS, told: true }
const UNTOLD = { since: NOW - 1, until: NOW + 1, told: false }

describe('a message refused with 463', () => {
  test('restricts for a while', () => {
    const restriction = afterRefusal(null, NOW)
    expect(restriction).toEqual({ since: NOW, until: NOW + UNTOLD_RESTRICTION_MS, told: false })
    expect(isInForce(restriction, restriction.until - 1)).toBe(true)
    expect(isInForce(restriction, restriction.until)).toBe(false)
  })

  test('prolongs what would end before, and keeps its beginning', () => {
    expect(afterRefusal(UNTOLD, NOW)).toEqual({ ...afterRefusal(null, NOW), since: UNTOLD.since })
  })

  test('never shortens what WhatsApp has told', () => {
    expect(afterRefusal(TOLD, NOW)).toEqual(TOLD)
  })

  test('begins anew when the last one has ended', () => {
    expect(afterRefusal({ ...UNTOLD, until: NOW }, NOW).since).toBe(NOW)
  })
})

describe('a notice', () => {
  test('that says until when is believed, whatever was held before', () => {
    const until = NOW + 5
    expect(afterNotice(null, { active: true, until }, NOW)).toEqual({ since: NOW, until, told: true })
    expect(afterNotice(TOLD, { active: true, until }, NOW)).toEqual({ since: TOLD.since, until, told: true })
    expect(afterNotice(UNTOLD, { active: true, until }, NOW)).toEqual({ since: UNTOLD.since, until, told: true })
  })

  test('without an end is as good as a refusal', () => {
    for (const before of [null, UNTOLD, TOLD]) {
      expect(afterNotice(before, { active: true, until: null }, NOW)).toEqual(afterRefusal(before, NOW))
    }
  })

  test('that there is none ends what was told, and not what follows from a refusal', () => {
    expect(afterNotice(TOLD, { active: false, until: null }, NOW)).toBeNull()
    expect(afterNotice(UNTOLD, { active: false, until: null }, NOW)).toEqual(UNTOLD)
    expect(afterNotice(null, { active: false, until: null }, NOW)).toBeNull()
  })

  test('of an end that has passed is the end', () => {
    expect(afterNotice(TOLD, { active: true, until: NOW }, NOW)).toBeNull()
  })
})
