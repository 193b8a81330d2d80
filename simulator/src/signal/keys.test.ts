import { randomBytes } from 'node:crypto'
import * as curve from 'libsignal/src/curve.js'
import { describe, expect, it } from 'vitest'
import { agree, deriveKeyPair, generateKeyPair, isSignedBy, sign, typed } from './keys.ts'

describe('key pairs', () => {
  it('derived from a secret are stable, differ per purpose, and agree with any other pair', () => {
    const secret = Buffer.alloc(32, 7)
    const pair = deriveKeyPair(secret, 'identity')
    expect(deriveKeyPair(secret, 'identity')).toEqual(pair)
    expect(deriveKeyPair(secret, 'other').publicKey).not.toEqual(pair.publicKey)
    const other = generateKeyPair()
    expect(agree(pair.privateKey, other.publicKey)).toEqual(agree(other.privateKey, pair.publicKey))
  })
})

describe('signatures', () => {
  it('are accepted exactly when libsignal accepts them', () => {
    for (let n = 0; n < 8; n++) {
      const pair = n % 2 ? generateKeyPair() : deriveKeyPair(randomBytes(32), 'x')
      const message = randomBytes(n * 13)
      const signature = sign(pair.privateKey, message)
      expect(curve.verifySignature(typed(pair.publicKey), message, signature)).toBe(true)
      expect(isSignedBy(pair.publicKey, message, signature)).toBe(true)
      expect(isSignedBy(pair.publicKey, randomBytes(33), signature)).toBe(false)
      expect(isSignedBy(generateKeyPair().publicKey, message, signature)).toBe(false)
      signature[n]! ^= 1
      expect(isSignedBy(pair.publicKey, message, signature)).toBe(false)
    }
  })

  it('of a wrong length, or by an invalid key, are refused without an error', () => {
    expect(isSignedBy(Buffer.alloc(31), Buffer.alloc(1), Buffer.alloc(64))).toBe(false)
    expect(isSignedBy(Buffer.alloc(32), Buffer.alloc(1), Buffer.alloc(63))).toBe(false)
    expect(isSignedBy(Buffer.alloc(32, 0xff), Buffer.alloc(1), Buffer.alloc(64, 0xff))).toBe(false)
  })
})
