import { expect, test } from 'vitest'
import { parseBearer } from './token.ts'

test.each([
  ['Bearer abc', 'abc'],
  ['bearer abc', 'abc'],
  ['BEARER   a.b-c_~+/=', 'a.b-c_~+/='],
])('%j carries a token', (header, token) => {
  expect(parseBearer(header)).toBe(token)
})

test.each([undefined, '', 'Bearer', 'Bearer ', 'abc', 'Basic abc', 'Bearer a b', 'Bearerabc', ' Bearer a', 'Bearer é'])(
  '%j carries none',
  header => {
    expect(parseBearer(header)).toBeNull()
  },
)
