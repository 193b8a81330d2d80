import { createPublicKey } from 'node:crypto'
import type { Records } from '../signal/records.ts'
import { SimulatorError } from '../types.ts'

/** A passkey of an account, as WhatsApp's server knows it. */
export interface Credential {
  /** Base64url. */
  id: string
  /** The key of a P-256 pair as COSE, base64url. */
  publicKey: string
  /** The authenticator's counter at its last use. */
  counter: number
}

interface Stored {
  isRequired: boolean
  credential: Credential | null
}

const KEY = 'passkey'
/** COSE_Key of an ES256 key (RFC 9053): the type, algorithm and curve, then the labels of x and y, each of 32 bytes. */
const COSE_HEAD = Buffer.from('a5010203262001215820', 'hex')
const COSE_Y = Buffer.from('225820', 'hex')

/** Whether WhatsApp asks for a passkey when a client is linked to the account, and the passkey that it accepts. */
export class AccountPasskey {
  readonly #records: Records
  #stored: Stored = { isRequired: false, credential: null }
  /** What the account's phone shows during the last step of a ceremony. In memory only. */
  code: string | null = null

  constructor(records: Records) {
    this.#records = records
  }

  restore(text: string): void {
    this.#stored = JSON.parse(text)
  }

  get isRequired(): boolean {
    return this.#stored.isRequired
  }

  get credential(): Credential | null {
    return this.#stored.credential
  }

  require(isRequired: boolean): void {
    this.#change({ isRequired })
  }

  /** @throws SimulatorError unless the key is a P-256 key. @param spki as a browser's `getPublicKey()` returns it, base64url */
  register(id: string, spki: string): void {
    this.#change({ credential: { id, publicKey: toCose(spki).toString('base64url'), counter: 0 } })
  }

  setCounter(counter: number): void {
    const { credential } = this.#stored
    if (credential) this.#change({ credential: { ...credential, counter } })
  }

  #change(change: Partial<Stored>): void {
    this.#stored = { ...this.#stored, ...change }
    this.#records.put(KEY, () => JSON.stringify(this.#stored))
  }
}

function toCose(spki: string): Buffer {
  try {
    const key = createPublicKey({ key: Buffer.from(spki, 'base64url'), format: 'der', type: 'spki' })
    const { crv, x = '', y = '' } = key.export({ format: 'jwk' })
    if (crv !== 'P-256') throw new Error('another curve')
    return Buffer.concat([COSE_HEAD, Buffer.from(x, 'base64url'), COSE_Y, Buffer.from(y, 'base64url')])
  } catch {
    throw new SimulatorError('invalid_argument', '`publicKey` must be a P-256 key as SPKI in base64url')
  }
}
