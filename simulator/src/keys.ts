import { createPrivateKey, createPublicKey, hkdfSync } from 'node:crypto'
import * as curve from 'libsignal/src/curve.js'

/** An X25519 key pair, both halves 32 bytes, without libsignal's type byte. */
export interface KeyPair {
  publicKey: Buffer
  privateKey: Buffer
}

const KEY_TYPE = Buffer.from([5])
const KEY_BYTES = 32
/** DER header of a PKCS #8 X25519 private key (RFC 8410). */
const PRIVATE_KEY_DER = Buffer.from('302e020100300506032b656e04220420', 'hex')

/** The 33-byte form that libsignal and the signatures use: type byte 05, then the key. */
export function typed(publicKey: Uint8Array): Buffer {
  return Buffer.concat([KEY_TYPE, publicKey])
}

export function generateKeyPair(): KeyPair {
  const pair = curve.generateKeyPair()
  return { publicKey: Buffer.from(pair.pubKey).subarray(1), privateKey: Buffer.from(pair.privKey) }
}

/** The same secret and purpose give the same pair for ever, so that it need not be stored. */
export function deriveKeyPair(secret: Uint8Array, purpose: string): KeyPair {
  const privateKey = hkdf(secret, purpose, KEY_BYTES)
  privateKey[0]! &= 0xf8
  privateKey[31] = (privateKey[31]! & 0x7f) | 0x40
  const key = createPrivateKey({ key: Buffer.concat([PRIVATE_KEY_DER, privateKey]), format: 'der', type: 'pkcs8' })
  const der = createPublicKey(key).export({ format: 'der', type: 'spki' })
  return { publicKey: der.subarray(der.length - KEY_BYTES), privateKey }
}

export function agree(privateKey: Buffer, publicKey: Uint8Array): Buffer {
  return Buffer.from(curve.calculateAgreement(typed(publicKey), privateKey))
}

/** XEdDSA. */
export function sign(privateKey: Buffer, message: Uint8Array): Buffer {
  return Buffer.from(curve.calculateSignature(privateKey, message))
}

export function isSignedBy(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  try {
    return curve.verifySignature(typed(publicKey), message, signature)
  } catch {
    return false
  }
}

export function hkdf(secret: Uint8Array, info: string, bytes: number, salt: Uint8Array = Buffer.alloc(0)): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, info, bytes))
}
