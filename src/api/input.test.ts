import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { newEventId, newInstanceId, newMessageId } from '../domain/ids.ts'
import {
  checkLink,
  checkText,
  checkWebhookUrl,
  findIdempotencyKey,
  isId,
  parseBearer,
  parseMoment,
  parseName,
} from './input.ts'

const anywhere = () => 'not_literal' as const

test('a text is refused only for its length in UTF-16 units, for U+0000 or for a lone surrogate', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1 }), text => {
      const good = text.isWellFormed() && !text.includes('\u0000')
      if (good) expect(() => checkText(text)).not.toThrow()
      else expect(() => checkText(text)).toThrow()
    }),
  )
  expect(() => checkText('x'.repeat(65_536))).not.toThrow()
  expect(() => checkText('x'.repeat(65_537))).toThrow(/65,536/)
})

describe('a link of a preview', () => {
  test.each([
    'https://example.com/a?b=c',
    'HTTP://example.com',
    'example.com',
    'example.com:8080/a',
    'münchen.example',
  ])('%s is accepted', link => {
    expect(() => checkLink('url', link)).not.toThrow()
  })

  test.each([
    ...['javascript:alert(1)', 'javascript:a.b', 'data:text/html,x', 'ftp://a.example', '//a.example', 'word', 'a.b c'],
    ...['http://u:p@h/', 'u:p@a.example', 'a.b@c.example', 'https://a.example/x y', 'https://a.example/\ud800'],
  ])('%j is refused', link => {
    expect(() => checkLink('url', link)).toThrow(/"url" must/)
  })
})

test('an idempotency key is 1 to 255 visible ASCII characters', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), key => {
      const good = key.length >= 1 && key.length <= 255 && [...key].every(c => c > ' ' && c < '\u007f')
      if (good) expect(findIdempotencyKey({ 'x-idempotency-key': key })).toBe(key)
      else expect(() => findIdempotencyKey({ 'x-idempotency-key': key })).toThrow()
    }),
  )
  expect(findIdempotencyKey({})).toBeUndefined()
})

test('every ID that Pombal creates is accepted, and text that could harm a query is not', () => {
  for (const id of [newInstanceId(), newMessageId(Date.now()), newEventId(0)]) expect(isId(id)).toBe(true)
  for (const text of ['', 'x', 'msg_', 'msg_\u0000', 'msg_A', 'msg_1 ', "msg_1'", `msg_${'0'.repeat(41)}`, 'msg_1\n']) {
    expect(isId(text)).toBe(false)
  }
})

describe('a time', () => {
  test.each([
    ['2026-11-21T12:00:00Z', Date.UTC(2026, 10, 21, 12)],
    ['2026-11-21T12:00:00.123Z', Date.UTC(2026, 10, 21, 12, 0, 0, 123)],
    ['2026-11-21T14:00+02:00', Date.UTC(2026, 10, 21, 12)],
  ])('%s', (text, at) => {
    expect(parseMoment('since', text)).toBe(at)
  })

  test.each([
    '',
    'now',
    '1700000000000',
    '2026-11-21',
    '2026-11-21T12:00:00',
    '2026-13-01T00:00:00Z',
    '2026-11-21T25:00:00Z',
  ])('%j is refused', text => {
    expect(() => parseMoment('since', text)).toThrow(/"since" must be an ISO 8601 time/)
  })
})

describe('a name', () => {
  test('is trimmed', () => {
    expect(parseName('name', ' \u00a0Shop one\t')).toBe('Shop one')
  })

  test.each(['', ' ', 'x'.repeat(101), 'a\u0000', 'a\nb', '\ud800'])('%j is refused', name => {
    expect(() => parseName('name', name)).toThrow(/"name"/)
  })
})

describe('a webhook URL', () => {
  test('is an http(s) URL without credentials; any other text is refused with an explanation', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.webUrl(),
          fc.string(),
          fc.string().map(text => `https://${text}`),
        ),
        url => {
          let refused = false
          try {
            checkWebhookUrl(url, anywhere)
          } catch (error) {
            expect((error as Error).message).toMatch(/^"url" /)
            refused = true
          }
          if (refused) return
          const { protocol, username, password } = new URL(url)
          expect(['http:', 'https:']).toContain(protocol)
          expect([username, password]).toEqual(['', ''])
          expect(url.length).toBeLessThanOrEqual(2_048)
        },
      ),
    )
  })

  test('has at most 2,048 characters as it is written, however long its encoded form is', () => {
    const url = `https://example.com/${'ã'.repeat(2_028)}`
    expect(() => checkWebhookUrl(url, anywhere)).not.toThrow()
    expect(() => checkWebhookUrl(`${url}x`, anywhere)).toThrow(/2,048/)
  })

  test('with an IP address is checked, and refused if the address is blocked', () => {
    const asked: string[] = []
    const block = (url: URL) => {
      asked.push(url.hostname)
      return 'blocked' as const
    }
    expect(() => checkWebhookUrl('http://0x7f.1/', block)).toThrow(/may not reach/)
    expect(asked).toEqual(['127.0.0.1'])
  })
})

test.each([
  ['Bearer abc', 'abc'],
  ['bearer abc', 'abc'],
  ['BEARER   a.b-c_~+/=', 'a.b-c_~+/='],
])('%j carries a token', (header, token) => {
  expect(parseBearer(header)).toBe(token)
})

test.each([undefined, '', 'Bearer', 'Bearer ', 'abc', 'Basic abc', 'Bearer a b', 'Bearerabc', ' Bearer a', 'Bearer é'])(
  '%j carries no token',
  header => {
    expect(parseBearer(header)).toBeNull()
  },
)
