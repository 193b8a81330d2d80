import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import type { PasskeyAssertion, PasskeyRequest } from '../src/domain/connection/passkey.ts'

/** Flags of the authenticator's data: the user was present, and was verified (WebAuthn, 6.1). */
const PRESENT = 0x01
const VERIFIED = 0x04

interface Differences {
  origin?: string
  rpId?: string
  flags?: number
  counter?: number
  challenge?: string
}

/** A passkey of a WhatsApp account, and the authenticator that holds it. */
export class TestPasskey {
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  readonly #id = randomBytes(32)
  #counter = 0

  /** For the simulator's order `require_passkey`. */
  get credential(): { id: string; publicKey: string } {
    const publicKey = this.#keys.publicKey.export({ format: 'der', type: 'spki' }).toString('base64url')
    return { id: this.#id.toString('base64url'), publicKey }
  }

  /** PKCS #8 in base64, for a browser's virtual authenticator. */
  get privateKey(): string {
    return this.#keys.privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')
  }

  /** What a browser would return on WhatsApp's page. */
  answer({ challenge, rpId }: Pick<PasskeyRequest, 'challenge' | 'rpId'>, differs: Differences = {}): PasskeyAssertion {
    this.#counter += 1
    const clientData = Buffer.from(
      JSON.stringify({
        type: 'webauthn.get',
        challenge: differs.challenge ?? challenge,
        origin: differs.origin ?? 'https://web.whatsapp.com',
        crossOrigin: false,
      }),
    )
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(differs.counter ?? this.#counter)
    const authenticatorData = Buffer.concat([
      sha256(Buffer.from(differs.rpId ?? rpId)),
      Buffer.of(differs.flags ?? PRESENT | VERIFIED),
      counter,
    ])
    const signed = Buffer.concat([authenticatorData, sha256(clientData)])
    const id = this.#id.toString('base64url')
    return {
      id,
      rawId: id,
      type: 'public-key',
      response: {
        clientDataJSON: clientData.toString('base64url'),
        authenticatorData: authenticatorData.toString('base64url'),
        signature: sign('sha256', signed, this.#keys.privateKey).toString('base64url'),
        userHandle: null,
      },
    }
  }
}

function sha256(data: Buffer): Buffer {
  return createHash('sha256').update(data).digest()
}
