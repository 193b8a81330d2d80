import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readableTarget } from './route-addresses.ts'

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
