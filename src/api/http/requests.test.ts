import type { IncomingMessage } from 'node:http'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readableTarget, requestIdOf } from './requests.ts'

function request(id?: string): IncomingMessage {
  return { headers: { 'x-request-id': id } } as unknown as IncomingMessage
}

test("a caller's ID of 1 to 128 visible ASCII characters is kept", () => {
  for (const id of ['a', '~!#', 'x'.repeat(128)]) expect(requestIdOf(request(id))).toBe(id)
  for (const id of ['', ' ', 'a b', 'x'.repeat(129), 'é', undefined]) expect(requestIdOf(request(id))).toMatch(/^req_/)
})

test('generated IDs are unique, and two of them do not show how many requests came between', () => {
  const ids = Array.from({ length: 2_000 }, () => requestIdOf(request()))
  expect(new Set(ids).size).toBe(2_000)
  for (const id of ids) expect(id).toMatch(/^req_[0-9a-f]{20}$/)
  // No part of the ID stays the same or counts.
  for (let at = 'req_'.length; at < ids[0]!.length; at += 1) {
    const digits = ids.map(id => id[at])
    expect(new Set(digits).size).toBe(16)
    const repeated = digits.filter((digit, index) => digit === digits[index - 1])
    expect(repeated.length).toBeLessThan(500)
  }
})

describe('readableTarget', () => {
  test.each([
    ['/v1/instance', '/v1/instance'],
    ['/a%20b?c=%zz', '/a%20b?c=%zz'],
    ['/a%zz', '/a%25zz'],
    ['/a%ff?x', '/a%25ff?x'],
    ['/%', '/%25'],
    ['http://host/v1/instance?x=1', '/v1/instance?x=1'],
    ['HTTPS://host:1', '/'],
    ['http://host?x', '/?x'],
    ['*', '*'],
  ])('%s is read as %s', (target, path) => {
    expect(readableTarget({ url: target })).toBe(path)
  })

  test('the router can decode every path, and a path that is already decodable is unchanged', () => {
    fc.assert(
      fc.property(fc.string(), text => {
        const path = `/${text.replaceAll(/[?#]/g, '_')}`
        const readable = readableTarget({ url: path })
        expect(() => decodeURIComponent(readable)).not.toThrow()
        expect(readable === path || decodeURIComponent(readable) === path).toBe(true)
      }),
    )
  })
})
