/** The cryptography of linking with a passkey, as WhatsApp's web client and three open-source clients do it. */
import { createCipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { type AuthenticationCreds, bytesToCrockford, Curve, type KeyPair, proto } from 'baileys'

const KEY_BYTES = 32
const NONCE_BYTES = 32
const IV_BYTES = 12
const CODE_BYTES = 5
const HANDOFF = 'shortcake-passkey-handoff-v1'
const PAIRING = 'Pairing Information Encryption Key'
/** WhatsApp's web client announces Chrome, whichever browser it runs in. */
const DEVICE_TYPE = proto.DeviceProps.PlatformType.CHROME

/** The phone's keys for one attempt. */
export interface PhoneKeys {
  publicKey: Uint8Array
  nonce: Uint8Array
}

/** Null if the bytes are not the phone's keys. */
export function parsePhoneKeys(data: Uint8Array): PhoneKeys | null {
  try {
    const { publicKey, nonce } = proto.PrimaryEphemeralIdentity.decode(data)
    return publicKey?.length === KEY_BYTES && nonce?.length === NONCE_BYTES ? { publicKey, nonce } : null
  } catch {
    return null
  }
}

/** A key that proves knowledge of the scanned or typed code's secret without revealing the secret. */
export function deriveHandoffKey(advSecretKey: string): Buffer {
  return derive(Buffer.from(advSecretKey, 'base64'), Buffer.alloc(0), HANDOFF)
}

export function createAdvSecret(): string {
  return randomBytes(KEY_BYTES).toString('base64')
}

/** Our keys for one attempt. */
export class PasskeyKeys {
  readonly nonce = randomBytes(NONCE_BYTES)
  /** Sent to WhatsApp with the assertion. It commits us to our nonce. */
  readonly payload: Uint8Array
  readonly #pair: KeyPair = Curve.generateKeyPair()
  readonly #ref: string

  /** @param ref WhatsApp's reference of this attempt */
  constructor(ref: string) {
    this.#ref = ref
    const companionEphemeralIdentity = proto.CompanionEphemeralIdentity.encode({
      publicKey: this.#pair.public,
      deviceType: DEVICE_TYPE,
      ref,
    }).finish()
    const hash = createHash('sha256').update(companionEphemeralIdentity).update(this.nonce).digest()
    this.payload = proto.ProloguePayload.encode({ companionEphemeralIdentity, commitment: { hash } }).finish()
  }

  prove(handoffKey: Uint8Array): Buffer {
    return createHmac('sha256', handoffKey).update(this.payload).digest()
  }

  /** Eight characters. The phone shows the same characters, unless somebody has replaced its keys on the way. */
  codeWith({ publicKey, nonce }: PhoneKeys): string {
    const mask = createHash('sha256').update(this.nonce).update(publicKey).digest()
    return bytesToCrockford(Buffer.from(nonce.subarray(0, CODE_BYTES).map((byte, at) => byte ^ mask[at]!)))
  }

  /** Our keys and the new secret, readable by the phone alone. */
  sealRequest({ publicKey }: PhoneKeys, creds: AuthenticationCreds, advSecretKey: string): Uint8Array {
    const request = proto.PairingRequest.encode({
      companionPublicKey: creds.noiseKey.public,
      companionIdentityKey: creds.signedIdentityKey.public,
      advSecret: Buffer.from(advSecretKey, 'base64'),
    }).finish()
    const salt = Buffer.from(`Companion Pairing ${DEVICE_TYPE} with ref ${this.#ref}`)
    const key = derive(Curve.sharedKey(this.#pair.private, publicKey), salt, PAIRING)
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv('aes-256-gcm', key, iv)
    const encryptedPayload = Buffer.concat([cipher.update(request), cipher.final(), cipher.getAuthTag()])
    return proto.EncryptedPairingRequest.encode({ encryptedPayload, iv }).finish()
  }
}

function derive(secret: Uint8Array, salt: Uint8Array, info: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, info, KEY_BYTES))
}
