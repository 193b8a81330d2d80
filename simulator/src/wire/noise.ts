/**
 * The server's half of WhatsApp's handshake, Noise_XX_25519_AESGCM_SHA256, with two deviations from the standard: the
 * prologue is the client's first four bytes, and the certificate chain is the payload of the second message.
 *
 *   client → server   e
 *   server → client   e, ee, s, es, certificate chain
 *   client → server   s, se, ClientPayload
 *
 * Then both sides split the chaining key into one AES-256-GCM key per direction, each with its own counter.
 */
import { createCipheriv, createDecipheriv, createHash, createSecretKey, type KeyObject } from 'node:crypto'
import { agree, generateKeyPair, hkdf, type KeyPair } from '../signal/keys.ts'

const MODE = Buffer.from('Noise_XX_25519_AESGCM_SHA256\0\0\0\0')
/** "WA", protocol 6, dictionary version 3. */
export const PROLOGUE = Buffer.from([0x57, 0x41, 6, 3])
const TAG_BYTES = 16
const NOTHING = Buffer.alloc(0)

export interface ServerHello {
  ephemeral: Buffer
  static: Buffer
  payload: Buffer
}

export interface ClientFinish {
  /** The client's noise key, which identifies it at every later login. */
  clientKey: Buffer
  payload: Buffer
  transport: NoiseTransport
}

/** One handshake. Every method throws on invalid bytes. */
export class NoiseResponder {
  #hash: Buffer = MODE
  #chainingKey: Buffer = MODE
  #key: KeyObject = createSecretKey(MODE)
  #counter = 0
  readonly #static: KeyPair
  readonly #ephemeral = generateKeyPair()

  constructor(staticKey: KeyPair) {
    this.#static = staticKey
    this.#mixHash(PROLOGUE)
  }

  answerHello(clientEphemeral: Uint8Array, certificateChain: Uint8Array): ServerHello {
    this.#mixHash(clientEphemeral)
    this.#mixHash(this.#ephemeral.publicKey)
    this.#mixKey(agree(this.#ephemeral.privateKey, clientEphemeral))
    const encryptedStatic = this.#encrypt(this.#static.publicKey)
    this.#mixKey(agree(this.#static.privateKey, clientEphemeral))
    const payload = this.#encrypt(certificateChain)
    return { ephemeral: this.#ephemeral.publicKey, static: encryptedStatic, payload }
  }

  readFinish(encryptedStatic: Uint8Array, encryptedPayload: Uint8Array): ClientFinish {
    const clientKey = this.#decrypt(encryptedStatic)
    this.#mixKey(agree(this.#ephemeral.privateKey, clientKey))
    const payload = this.#decrypt(encryptedPayload)
    const keys = hkdf(NOTHING, '', 64, this.#chainingKey)
    return { clientKey, payload, transport: new NoiseTransport(keys.subarray(0, 32), keys.subarray(32)) }
  }

  #mixHash(data: Uint8Array): void {
    this.#hash = createHash('sha256').update(this.#hash).update(data).digest()
  }

  #mixKey(secret: Buffer): void {
    const keys = hkdf(secret, '', 64, this.#chainingKey)
    this.#chainingKey = keys.subarray(0, 32)
    this.#key = createSecretKey(keys.subarray(32))
    this.#counter = 0
  }

  #encrypt(plaintext: Uint8Array): Buffer {
    const ciphertext = seal(this.#key, this.#counter++, plaintext, this.#hash)
    this.#mixHash(ciphertext)
    return ciphertext
  }

  #decrypt(ciphertext: Uint8Array): Buffer {
    const plaintext = open(this.#key, this.#counter++, ciphertext, this.#hash)
    this.#mixHash(ciphertext)
    return plaintext
  }
}

export class NoiseTransport {
  readonly #readKey: KeyObject
  readonly #writeKey: KeyObject
  #readCounter = 0
  #writeCounter = 0

  constructor(readKey: Buffer, writeKey: Buffer) {
    this.#readKey = createSecretKey(readKey)
    this.#writeKey = createSecretKey(writeKey)
  }

  seal(plaintext: Uint8Array): Buffer {
    return seal(this.#writeKey, this.#writeCounter++, plaintext, NOTHING)
  }

  open(ciphertext: Uint8Array): Buffer {
    return open(this.#readKey, this.#readCounter++, ciphertext, NOTHING)
  }
}

function nonce(counter: number): Buffer {
  const iv = Buffer.alloc(12)
  iv.writeUInt32BE(counter, 8)
  return iv
}

function seal(key: KeyObject, counter: number, plaintext: Uint8Array, associated: Buffer): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce(counter))
  cipher.setAAD(associated)
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
}

function open(key: KeyObject, counter: number, ciphertext: Uint8Array, associated: Buffer): Buffer {
  if (ciphertext.length < TAG_BYTES) throw new Error('ciphertext shorter than its tag')
  const end = ciphertext.length - TAG_BYTES
  const decipher = createDecipheriv('aes-256-gcm', key, nonce(counter), { authTagLength: TAG_BYTES })
  decipher.setAAD(associated)
  decipher.setAuthTag(ciphertext.subarray(end))
  return Buffer.concat([decipher.update(ciphertext.subarray(0, end)), decipher.final()])
}
