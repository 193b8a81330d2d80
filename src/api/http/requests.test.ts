import type { IncomingMessage } from 'node:http'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createRequestIds, readableTarget } from './requests.ts'

function request(id?: string): IncomingMessage {
  return { headers: { 'x-request-id': id } } as unknown as IncomingMessage
}

test("a caller's ID of 1 to 128 visible ASCII characters is kept", () => {
  const idOf = createRequestIds()
  for (const id of ['a', '~!#', 'x'.repeat(128)]) expect(idOf(request(id))).toBe(id)
  for (const id of ['', ' ', 'a b', 'x'.repeat(129), 'é', undefined]) expect(idOf(request(id))).toMatch(/^req_/)
})

test('generated IDs are unique, also across restarts', () => {
  const [one, two] = [createRequestIds(), createRequestIds()]
  const ids = Array.from({ length: 1_000 }, () => [one(request()), two(request())]).flat()
  expect(new Set(ids).size).toBe(2_000)
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
