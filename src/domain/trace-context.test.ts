import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseTraceparent } from './trace-context.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'
const VALID = `00-${TRACE}-${SPAN}-01`

test('a valid header is kept as it is', () => {
  expect(parseTraceparent(VALID)).toBe(VALID)
  expect(parseTraceparent(`00-${TRACE}-${SPAN}-00`)).toBe(`00-${TRACE}-${SPAN}-00`)
})

test('a later version is read as version 00, with or without more fields', () => {
  expect(parseTraceparent(`cc-${TRACE}-${SPAN}-01`)).toBe(VALID)
  expect(parseTraceparent(`cc-${TRACE}-${SPAN}-01-what-the-future-holds`)).toBe(VALID)
})

test('unknown flags are dropped', () => {
  expect(parseTraceparent(`00-${TRACE}-${SPAN}-ff`)).toBe(VALID)
  expect(parseTraceparent(`00-${TRACE}-${SPAN}-0a`)).toBe(`00-${TRACE}-${SPAN}-00`)
})

test.each([
  ['no header', undefined],
  ['several headers', [VALID, VALID]],
  ['two headers in one', `${VALID}, ${VALID}`],
  ['an empty one', ''],
  ['the forbidden version', `ff-${TRACE}-${SPAN}-01`],
  ['a trace ID of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['a span ID of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['capitals', VALID.toUpperCase()],
  ['more fields in version 00', `${VALID}-more`],
  ['a longer last field of a later version', `cc-${TRACE}-${SPAN}-01.more`],
  ['spaces', ` ${VALID}`],
  ['a line break', `${VALID}\r\nx: y`],
  ['digits of other scripts', `00-${'٣'.repeat(32)}-${SPAN}-01`],
  ['a very long one', 'a'.repeat(100_000)],
])('ignored: %s', (_, header) => {
  expect(parseTraceparent(header)).toBeUndefined()
})

test('whatever the header is, the result is a header of version 00 or nothing', () => {
  const hex = (length: number) =>
    fc.string({ unit: fc.constantFrom(...'0123456789abcdefAF'), minLength: length, maxLength: length })
  const almost = fc
    .tuple(hex(2), hex(32), hex(16), hex(2), fc.string())
    .map(([v, t, s, f, more]) => `${v}-${t}-${s}-${f}${more}`)
  fc.assert(
    fc.property(fc.oneof(fc.string(), almost), header => {
      const parsed = parseTraceparent(header)
      if (parsed !== undefined) expect(parsed).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/)
    }),
  )
})
