import { createPrivateKey, createPublicKey } from 'node:crypto'
import { type AuthenticationCreds, type KeyPair, proto } from 'baileys'
import * as curve from 'libsignal/src/curve.js'
import { numberOf } from '../addresses.ts'

const DEVICE = /:\d{1,5}@/
const PHONE = /^\d{5,15}$/
const KEY_BYTES = 32
const SIGNATURE_BYTES = 64
/** The first byte of libsignal's public keys. */
const KEY_TYPE = Uint8Array.of(5)
const PKCS8_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex')
const ACCOUNT_PREFIX = Uint8Array.of(6, 0)
const HOSTED_ACCOUNT_PREFIX = Uint8Array.of(6, 5)
const DEVICE_PREFIX = Uint8Array.of(6, 1)

/** A sentence that says what is wrong with the credentials. Null if no flaw is visible without logging in. */
export function flawOf(creds: unknown): string | null {
  if (typeof creds !== 'object' || creds === null || Array.isArray(creds)) return 'It holds no credentials.'
  const { me, account, registrationId, noiseKey, signedIdentityKey, signedPreKey, advSecretKey } =
    creds as Partial<AuthenticationCreds>
  if (noiseKey === undefined && me === undefined) return 'It holds no credentials of Baileys.'
  if (typeof me?.id !== 'string' || !account)
    return 'No number is linked: a code was requested, but no phone confirmed it.'
  if (!PHONE.test(numberOf(me.id) ?? '') || !DEVICE.test(me.id)) return 'It does not name a number and its device.'
  for (const [name, pair] of [
    ['noise key', noiseKey],
    ['identity key', signedIdentityKey],
    ['signed pre-key', signedPreKey?.keyPair],
  ] as const)
    if (!isPair(pair)) return `The two halves of the ${name} do not belong together.`
  if (typeof registrationId !== 'number' || typeof advSecretKey !== 'string') return 'Parts of it are missing.'
  return flawOfSignatures(signedIdentityKey!, signedPreKey!, account)
}

function flawOfSignatures(
  identity: KeyPair,
  signedPreKey: AuthenticationCreds['signedPreKey'],
  account: proto.IADVSignedDeviceIdentity,
): string | null {
  const preKey = Buffer.concat([KEY_TYPE, signedPreKey.keyPair.public])
  if (!isSigned(identity.public, preKey, signedPreKey.signature))
    return 'The identity key did not sign the signed pre-key.'
  const details = bytesOf(account.details)
  const phoneKey = bytesOf(account.accountSignatureKey)
  const device = details && decodeDetails(details)
  if (!details || !device || !phoneKey) return "The phone's confirmation cannot be read."
  const isHosted = device.deviceType === proto.ADVEncryptionType.HOSTED
  const prefix = isHosted ? HOSTED_ACCOUNT_PREFIX : ACCOUNT_PREFIX
  const confirmed = Buffer.concat([prefix, details, identity.public])
  if (!isSigned(phoneKey, confirmed, bytesOf(account.accountSignature)))
    return 'The phone did not sign this identity key.'
  const answered = Buffer.concat([DEVICE_PREFIX, details, identity.public, phoneKey])
  if (!isSigned(identity.public, answered, bytesOf(account.deviceSignature)))
    return "The identity key did not sign the phone's confirmation."
  return null
}

/** Whether both keys have 32 bytes and the public key belongs to the private key. */
export function isPair(value: unknown): value is KeyPair {
  const { public: publicKey, private: privateKey } = (value ?? {}) as { public?: unknown; private?: unknown }
  if (!isKey(publicKey) || !isKey(privateKey)) return false
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, privateKey]), format: 'der', type: 'pkcs8' })
  const derived = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-KEY_BYTES)
  return derived.equals(publicKey)
}

/** Protobuf's JSON encodes bytes as base64 and does not distinguish them from text. */
function bytesOf(value: unknown): Uint8Array | null {
  if (typeof value === 'string') return Buffer.from(value, 'base64')
  return value instanceof Uint8Array ? value : null
}

function isKey(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array && value.length === KEY_BYTES
}

/** Does not use Baileys' `Curve.verify`, which accepts any 64 bytes. */
function isSigned(publicKey: Uint8Array, message: Uint8Array, signature: unknown): boolean {
  if (!isKey(publicKey) || !(signature instanceof Uint8Array) || signature.length !== SIGNATURE_BYTES) return false
  return curve.verifySignature(Buffer.concat([KEY_TYPE, publicKey]), message, signature) === true
}

function decodeDetails(details: Uint8Array): proto.IADVDeviceIdentity | null {
  try {
    return proto.ADVDeviceIdentity.decode(details)
  } catch {
    return null
  }
}
