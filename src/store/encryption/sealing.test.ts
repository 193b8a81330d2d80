import { describe, expect, test } from 'vitest'
import { Sealing } from './sealing.ts'

const KEY = new Uint8Array(32).fill(1)
const PLAIN = Buffer.from('a private key')

describe('sealing', () => {
  const sealing = new Sealing(KEY)
  const sealed = sealing.seal('inst_1', 'credentials:1', PLAIN)

  test('a sealed value opens in its place, even after a restart', () => {
    expect(new Sealing(KEY).open('inst_1', 'credentials:1', sealed)).toEqual(PLAIN)
    expect(sealing.open('s', 'p', sealing.seal('s', 'p', Buffer.alloc(0)))).toHaveLength(0)
  })

  test('a sealed value does not open under another key, in another place or for another instance', () => {
    expect(() => new Sealing(new Uint8Array(32)).open('inst_1', 'credentials:1', sealed)).toThrow()
    expect(() => sealing.open('inst_1', 'credentials:2', sealed)).toThrow()
    expect(() => sealing.open('inst_2', 'credentials:1', sealed)).toThrow()
  })

  test('a sealed value does not open if any byte was changed or removed', () => {
    for (let index = 0; index < sealed.length; index += 1) {
      const changed = Buffer.from(sealed)
      changed[index]! ^= 1
      expect(() => sealing.open('inst_1', 'credentials:1', changed)).toThrow()
      expect(() => sealing.open('inst_1', 'credentials:1', sealed.subarray(0, index))).toThrow()
    }
  })

  test('sealing the same value twice gives different bytes, which do not contain the plain text', () => {
    expect(Buffer.from(sealing.seal('inst_1', 'credentials:1', PLAIN)).equals(Buffer.from(sealed))).toBe(false)
    expect(Buffer.from(sealed).includes(PLAIN)).toBe(false)
  })

  test('refuses a master key of another length', () => {
    expect(() => new Sealing(new Uint8Array(16))).toThrow(RangeError)
  })
})
