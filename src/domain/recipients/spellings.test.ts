import { expect, test } from 'vitest'
import { otherSpelling, shortSpelling } from './spellings.ts'

test.each([
  ['5511987654321', '551187654321'],
  ['5215512345678', '525512345678'],
  ['5491112345678', '541112345678'],
])('%s may be written %s', (long, short) => {
  expect([shortSpelling(long), shortSpelling(short)]).toEqual([short, short])
  expect([otherSpelling(long), otherSpelling(short)]).toEqual([short, long])
})

test.each(['15551230001', '4915112345678', '120363041234567890@g.us', '123456789012345@lid'])(
  '%s has one spelling',
  name => {
    expect(shortSpelling(name)).toBe(name)
    expect(otherSpelling(name)).toBeNull()
  },
)
