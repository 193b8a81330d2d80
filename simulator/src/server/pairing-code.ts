/**
 * Linking by an eight-character code that the client shows and the phone's owner types. Each side sends the other an
 * ephemeral key, wrapped under the code. Both sides derive the secret that a QR code would contain from these keys, their
 * identities and a random value of the client. Only the client's last message shows whether the code was right.
 */
import { createCipheriv, createDecipheriv, pbkdf2, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { agree, generateKeyPair, hkdf, type KeyPair } from '../signal/keys.ts'
import { SimulatorError } from '../types.ts'
import { bytes, type Node, node, SERVER, seconds } from '../wire/nodes.ts'

const ROUNDS = 131_072
const KEY_BYTES = 32
const SALT_BYTES = 32
const CTR_IV_BYTES = 16
const GCM_IV_BYTES = 12
const TAG_BYTES = 16
/** How long a client has to answer the phone. */
const FINISH_WITHIN_MS = 10_000

const derive = promisify(pbkdf2)

export class PairingCodeExchange {
  readonly ref = randomBytes(16)
  readonly #wrappedKey: Buffer
  readonly #companionIdentity: Buffer
  #finished: { resolve: (request: Node) => void; reject: (error: Error) => void } | null = null

  /** @param request the client's `companion_hello` */
  constructor(request: Node, companionIdentity: Buffer) {
    this.#wrappedKey = bytes(request, 'link_code_pairing_wrapped_companion_ephemeral_pub') ?? Buffer.alloc(0)
    this.#companionIdentity = companionIdentity
  }

  /**
   * The phone answers the client and waits for its last message. Returns the shared secret.
   * @throws SimulatorError `unknown_pairing_code` if the client shows another code, or does not answer
   */
  async answer(code: string, phoneIdentity: KeyPair, send: (notification: Node) => void): Promise<Buffer> {
    const ephemeral = generateKeyPair()
    const companionEphemeral = await unwrap(this.#wrappedKey, code)
    const wrapped = await wrap(ephemeral.publicKey, code)
    const finished = this.#awaitFinish()
    send(this.#hello(wrapped, phoneIdentity.publicKey))
    const request = await finished
    const shared = agree(ephemeral.privateKey, companionEphemeral)
    const random = this.#openBundle(request, shared, phoneIdentity.publicKey)
    const identities = agree(phoneIdentity.privateKey, this.#companionIdentity)
    return hkdf(Buffer.concat([shared, identities, random]), 'adv_secret', KEY_BYTES)
  }

  /** Handles the client's `companion_finish`. */
  finish(request: Node): void {
    this.#finished?.resolve(request)
  }

  abandon(error: Error): void {
    this.#finished?.reject(error)
  }

  #awaitFinish(): Promise<Node> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(wrongCode()), FINISH_WITHIN_MS)
      const done = () => {
        clearTimeout(timer)
        this.#finished = null
      }
      this.#finished = {
        resolve: request => {
          done()
          resolve(request)
        },
        reject: error => {
          done()
          reject(error)
        },
      }
    })
  }

  #hello(wrapped: Buffer, identity: Buffer): Node {
    const attrs = {
      from: SERVER,
      type: 'link_code_companion_reg',
      id: randomBytes(8).toString('hex'),
      t: seconds(Date.now()),
    }
    return node('notification', attrs, [
      node('link_code_companion_reg', { stage: 'primary_hello' }, [
        node('link_code_pairing_wrapped_primary_ephemeral_pub', {}, wrapped),
        node('primary_identity_pub', {}, identity),
        node('link_code_pairing_ref', {}, this.ref),
      ]),
    ])
  }

  #openBundle(request: Node, shared: Buffer, phoneIdentity: Buffer): Buffer {
    const bundle = bytes(request, 'link_code_pairing_wrapped_key_bundle') ?? Buffer.alloc(0)
    const salt = bundle.subarray(0, SALT_BYTES)
    const iv = bundle.subarray(SALT_BYTES, SALT_BYTES + GCM_IV_BYTES)
    const sealed = bundle.subarray(SALT_BYTES + GCM_IV_BYTES)
    const key = hkdf(shared, 'link_code_pairing_key_bundle_encryption_key', KEY_BYTES, salt)
    let opened: Buffer
    try {
      const end = sealed.length - TAG_BYTES
      const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES })
      decipher.setAuthTag(sealed.subarray(end))
      opened = Buffer.concat([decipher.update(sealed.subarray(0, end)), decipher.final()])
    } catch {
      throw wrongCode()
    }
    const expected = Buffer.concat([this.#companionIdentity, phoneIdentity])
    if (!opened.subarray(0, expected.length).equals(expected)) throw wrongCode()
    return opened.subarray(expected.length)
  }
}

function wrongCode(): SimulatorError {
  return new SimulatorError('unknown_pairing_code', 'no client shows this pairing code for this number')
}

async function wrap(key: Buffer, code: string): Promise<Buffer> {
  const salt = randomBytes(SALT_BYTES)
  const iv = randomBytes(CTR_IV_BYTES)
  const cipher = createCipheriv('aes-256-ctr', await derive(code, salt, ROUNDS, KEY_BYTES, 'sha256'), iv)
  return Buffer.concat([salt, iv, cipher.update(key), cipher.final()])
}

async function unwrap(wrapped: Buffer, code: string): Promise<Buffer> {
  if (wrapped.length !== SALT_BYTES + CTR_IV_BYTES + KEY_BYTES) throw wrongCode()
  const salt = wrapped.subarray(0, SALT_BYTES)
  const iv = wrapped.subarray(SALT_BYTES, SALT_BYTES + CTR_IV_BYTES)
  const decipher = createDecipheriv('aes-256-ctr', await derive(code, salt, ROUNDS, KEY_BYTES, 'sha256'), iv)
  return Buffer.concat([decipher.update(wrapped.subarray(SALT_BYTES + CTR_IV_BYTES)), decipher.final()])
}
