import { describe, expect, test } from 'vitest'
import { parseLinkEnd } from '../baileys/link-end.ts'
import { afterClose, nextStep, pauseBefore } from './after-close.ts'

const ended = (code: number, deviceRemoved = false) => afterClose({ code, deviceRemoved })

describe('the reaction to the end of a socket', () => {
  test('only a removal by the phone erases credentials', () => {
    const codes = Array.from({ length: 600 }, (_, code) => code)
    expect(codes.filter(code => ended(code).kind === 'logged_out')).toEqual([401])
    expect(ended(440, true).kind).toBe('logged_out')
  })

  test.each([402, 403, 405, 406, 409, 411, 440])('%i stops until a person acts', code => {
    expect(ended(code).kind).toBe('stop')
  })

  test.each([408, 428, 500, 503, 516, 999])('%i is retried', code => {
    expect(ended(code).kind).toBe('retry')
  })

  test('a refused version names the setting in its reason', () => {
    expect(ended(405)).toMatchObject({ reason: expect.stringContaining('WHATSAPP_VERSION') })
  })

  test('515 asks for a new socket at once', () => {
    expect(ended(515)).toEqual({ kind: 'restart' })
  })
})

describe('the next step', () => {
  const situation = {
    linked: true,
    isFirstLogin: false,
    codesRanOut: false,
    linksItself: false,
    failures: 0,
    restarts: 0,
  }
  const next = (code: number, more: Partial<typeof situation> = {}) =>
    nextStep({ code, deviceRemoved: false }, { ...situation, ...more })

  test('repeated restarts get a pause', () => {
    expect(next(515, { restarts: 1 }).kind).toBe('restart')
    expect(next(515, { restarts: 5 })).toMatchObject({ kind: 'pause', state: 'reconnecting' })
  })

  test('a refusal leads to rest: stopped with credentials, unlinked without', () => {
    expect(next(405)).toMatchObject({ kind: 'rest', state: 'stopped' })
    expect(next(405, { linked: false })).toMatchObject({ kind: 'rest', state: 'unlinked' })
  })

  test('expired codes lead to rest; a cut while a code is shown (also 408) does not', () => {
    expect(next(408, { linked: false, codesRanOut: true })).toMatchObject({ kind: 'rest', state: 'unlinked' })
    expect(next(408, { linked: false })).toMatchObject({ kind: 'pause', state: 'linking' })
  })

  test('repeated failures to link lead to rest, unless the phone links itself', () => {
    expect(next(428, { linked: false, failures: 5 })).toMatchObject({ kind: 'rest', state: 'unlinked' })
    expect(next(428, { linked: false, failures: 50, linksItself: true }).kind).toBe('pause')
  })

  test('without credentials nothing can be logged out: the linking has failed', () => {
    expect(next(401, { linked: false })).toMatchObject({ kind: 'rest', cause: 'linking_unfinished' })
    expect(next(401, { linked: false, linksItself: true }).kind).toBe('pause')
    expect(next(401, { isFirstLogin: true })).toMatchObject({ kind: 'logged_out', cause: 'linking_unfinished' })
    expect(next(401).kind).toBe('logged_out')
  })
})

describe('the pause before the next socket', () => {
  test('doubles up to five minutes, and is shortened at random by half at most', () => {
    for (let failures = 1; failures < 40; failures += 1) {
      const fullMs = Math.min(1_000 * 2 ** (failures - 1), 300_000)
      expect(pauseBefore(failures, false, 0)).toBe(fullMs / 2)
      expect(pauseBefore(failures, false, 1)).toBe(fullMs)
    }
  })

  test('is longer at first when WhatsApp is unavailable', () => {
    expect(pauseBefore(1, true, 0)).toBeGreaterThan(pauseBefore(1, false, 1))
  })
})

describe('the cause of an end', () => {
  test('is the status code of the error', () => {
    expect(parseLinkEnd({ output: { statusCode: 428 } })).toEqual({ code: 428, deviceRemoved: false })
  })

  test.each([undefined, null, 1006, new Error('socket hang up'), {}])('is unknown for %o', error => {
    expect(parseLinkEnd(error)).toEqual({ code: 500, deviceRemoved: false })
  })

  test.each([
    ['ECONNREFUSED', 'unreachable', 'WhatsApp could not be reached (ECONNREFUSED).'],
    ['ENOTFOUND', 'unreachable', 'WhatsApp could not be reached (ENOTFOUND).'],
    ['CERT_HAS_EXPIRED', 'unreachable', 'WhatsApp could not be reached (CERT_HAS_EXPIRED).'],
    ['ECONNRESET', 'cut', 'The connection to WhatsApp was cut.'],
    ['ETIMEDOUT', 'no_answer', 'WhatsApp did not answer in time.'],
    ['WS_ERR_INVALID_OPCODE', 'no_answer', 'WhatsApp did not answer in time.'],
  ])('follows from the system error: %s', (code, cause, reason) => {
    const data = Object.assign(new Error('what Baileys calls a time-out'), { code })
    expect(afterClose(parseLinkEnd({ output: { statusCode: 408 }, data }))).toEqual({ kind: 'retry', cause, reason })
  })

  test('distinguishes a removal from a replacement, which share a code', () => {
    const conflict = (type: string) => ({ output: { statusCode: 440 }, data: { tag: 'conflict', attrs: { type } } })
    expect(parseLinkEnd(conflict('device_removed')).deviceRemoved).toBe(true)
    expect(parseLinkEnd(conflict('replaced')).deviceRemoved).toBe(false)
  })
})
