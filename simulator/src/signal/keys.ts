import { createPrivateKey, createPublicKey, hkdfSync, verify } from 'node:crypto'
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

/** DER header of an Ed25519 public key (RFC 8410). */
const ED25519_PUBLIC_DER = Buffer.from('302a300506032b6570032100', 'hex')
const SIGNATURE_BYTES = 64
const SIGN_BIT = 0x80
const PRIME = 2n ** 255n - 19n
const FIELD_MASK = 2n ** 255n - 1n

/** The 33-byte form that libsignal and the signatures use: type byte 05, then the key. */
export function typed(publicKey: Uint8Array): Buffer {
  return Buffer.concat([KEY_TYPE, publicKey])
}

export function generateKeyPair(): KeyPair {
  const pair = curve.generateKeyPair()
  return { publicKey: Buffer.from(pair.pubKey).subarray(1), privateKey: Buffer.from(pair.privKey) }
}

/** The pair need not be stored, because the same secret and purpose always give the same pair. */
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

/** Checks an XEdDSA signature as Ed25519 with Node's crypto. libsignal's own check is about twenty times slower. */
export function isSignedBy(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== KEY_BYTES || signature.length !== SIGNATURE_BYTES) return false
  const ed25519Signature = Buffer.from(signature)
  const sign = ed25519Signature[SIGNATURE_BYTES - 1]! & SIGN_BIT
  ed25519Signature[SIGNATURE_BYTES - 1]! &= ~SIGN_BIT
  const der = Buffer.concat([ED25519_PUBLIC_DER, edwardsPoint(publicKey, sign)])
  return verify(null, message, createPublicKey({ key: der, format: 'der', type: 'spki' }), ed25519Signature)
}

/** The Ed25519 form of an X25519 key: y = (u - 1) / (u + 1), with the sign of x in the highest bit. */
function edwardsPoint(publicKey: Uint8Array, sign: number): Buffer {
  const u = BigInt(`0x${Buffer.from(publicKey).reverse().toString('hex')}`) & FIELD_MASK
  const y = ((u - 1n + PRIME) * power(u + 1n, PRIME - 2n)) % PRIME
  const encoded = Buffer.from(y.toString(16).padStart(2 * KEY_BYTES, '0'), 'hex').reverse()
  encoded[KEY_BYTES - 1]! |= sign
  return encoded
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n
  let square = base % PRIME
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % PRIME
    square = (square * square) % PRIME
  }
  return result
}

export function hkdf(secret: Uint8Array, info: string, bytes: number, salt: Uint8Array = Buffer.alloc(0)): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, info, bytes))
}
