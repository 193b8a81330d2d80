/**
 * Linking of an account that has a passkey. The client first proves that its user holds the passkey. Then the phone and the
 * client exchange ephemeral keys, and the client sends the secret that confirms the linking, encrypted for the phone.
 *
 * A client that knows the secret of the scanned or typed code proves it. Otherwise both sides show a code of eight characters,
 * and the client sends its last message when its user has compared them.
 */
import { createDecipheriv, createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { proto } from 'baileys/WAProto/index.js'
import type { Account, Companion } from '../account.ts'
import { agree, generateKeyPair, hkdf, type KeyPair } from '../signal/keys.ts'
import { SimulatorError } from '../types.ts'
import { bytes, child, type Node, node } from '../wire/nodes.ts'
import { checkAssertion, RP_ID } from './assertion.ts'
import type { PasskeyPlay } from './passkey-play.ts'

const KEY_BYTES = 32
const NONCE_BYTES = 32
const CODE_BYTES = 5
const TAG_BYTES = 16
const VALID_MS = 600_000
const SHORT_MS = 1_500
const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTVWXYZ'
const BITS_PER_CHARACTER = 5

export interface PasskeyExchangeOptions {
  account: Account
  companion: Pick<Companion, 'noiseKey' | 'identity'>
  /** The secret of the code that the phone has scanned, or that was typed on it. */
  advSecret: Buffer
  takePlay(play: PasskeyPlay): boolean
  notify(type: string, content: Node | undefined): void
}

/** An answer to the client: the content of a result, or the code of an error. */
export type PasskeyAnswer = Node[] | undefined | { error: string }

export class PasskeyExchange {
  readonly #options: PasskeyExchangeOptions
  readonly #ref = randomBytes(16).toString('base64url')
  readonly #phone: KeyPair = generateKeyPair()
  readonly #phoneNonce = randomBytes(NONCE_BYTES)
  readonly #finished = Promise.withResolvers<Buffer>()
  #challenge = ''
  #passkeyRequest: Buffer = Buffer.alloc(0)
  #identity: proto.CompanionEphemeralIdentity | null = null
  #identityBytes: Uint8Array = Buffer.alloc(0)
  #commitment: Uint8Array = Buffer.alloc(0)
  #isCommitted = false

  constructor(options: PasskeyExchangeOptions) {
    this.#options = options
    this.#finished.promise.catch(() => undefined)
  }

  /** Resolves to the secret that confirms the linking. @throws SimulatorError `linking_failed` */
  async run(): Promise<Buffer> {
    const { takePlay, notify, account } = this.#options
    account.passkey.code = null
    this.#createRequest(takePlay('expires') ? SHORT_MS : VALID_MS)
    notify('passkey_prologue_request', takePlay('no_options') ? undefined : this.#requestNode())
    if (takePlay('repeated')) {
      this.#createRequest(VALID_MS)
      notify('passkey_prologue_request', this.#requestNode())
    }
    return this.#finished.promise
  }

  abandon(error: Error): void {
    this.#finished.reject(error)
  }

  /** @returns null for a query that is no part of the ceremony */
  async answer(query: Node): Promise<PasskeyAnswer | null> {
    if (child(query, 'passkey_request_options')) return [this.#requestNode()]
    if (child(query, 'ref')) return [node('ref', {}, Buffer.from(this.#ref))]
    const prologue = child(query, 'passkey_prologue')
    if (prologue) return this.#begin(prologue)
    if (child(query, 'companion_nonce')) return this.#reveal(bytes(query, 'companion_nonce')!)
    if (child(query, 'encrypted_pairing_request')) return this.#finish(bytes(query, 'encrypted_pairing_request')!)
    return null
  }

  #createRequest(timeout: number): void {
    const { credential } = this.#options.account.passkey
    this.#challenge = randomBytes(32).toString('base64url')
    // As captured from WhatsApp, which may list the account's passkeys.
    const request = {
      challenge: this.#challenge,
      timeout,
      rpId: RP_ID,
      allowCredentials: credential ? [{ id: credential.id, type: 'public-key' }] : [],
      userVerification: 'required',
      extensions: { uvm: true },
    }
    this.#passkeyRequest = Buffer.from(JSON.stringify(request))
  }

  #requestNode(): Node {
    return node('passkey_request_options', {}, this.#passkeyRequest)
  }

  async #begin(prologue: Node): Promise<PasskeyAnswer> {
    const { account, takePlay } = this.#options
    const { credential } = account.passkey
    const payload = bytes(prologue, 'prologue_payload') ?? Buffer.alloc(0)
    const counter = credential && (await this.#check(prologue, credential.id))
    if (
      counter === null ||
      takePlay('refused') ||
      !this.#readPayload(payload, bytes(prologue, 'pairing_handoff_proof'))
    ) {
      this.#createRequest(VALID_MS)
      return { error: '401' }
    }
    await account.applyDurably(() => {
      account.passkey.setCounter(counter)
      return []
    })
    if (takePlay('silence')) return undefined
    const continuation = () => this.#sendKeys(takePlay('wrong_code'))
    if (takePlay('early')) continuation()
    else setImmediate(continuation)
    return undefined
  }

  async #check(prologue: Node, credentialId: string): Promise<number | null> {
    const given = bytes(prologue, 'webauthn_assertion')
    const isKnown = bytes(prologue, 'credential_id')?.equals(Buffer.from(credentialId, 'base64url'))
    const { credential } = this.#options.account.passkey
    return given && isKnown && credential ? checkAssertion(given, this.#challenge, credential) : null
  }

  /** False if the client does not know the secret that it claims to know. */
  #readPayload(payload: Buffer, proof: Buffer | undefined): boolean {
    const { companionEphemeralIdentity, commitment } = proto.ProloguePayload.decode(payload)
    this.#identityBytes = companionEphemeralIdentity ?? Buffer.alloc(0)
    this.#identity = proto.CompanionEphemeralIdentity.decode(this.#identityBytes)
    this.#commitment = commitment?.hash ?? Buffer.alloc(0)
    if (this.#identity.ref !== this.#ref || this.#identity.publicKey?.length !== KEY_BYTES) return false
    if (proof === undefined) return true
    const key = hkdf(this.#options.advSecret, 'shortcake-passkey-handoff-v1', KEY_BYTES)
    const expected = createHmac('sha256', key).update(payload).digest()
    return proof.length === expected.length && timingSafeEqual(proof, expected)
  }

  #sendKeys(areExchanged: boolean): void {
    const { publicKey } = areExchanged ? generateKeyPair() : this.#phone
    const nonce = areExchanged ? randomBytes(NONCE_BYTES) : this.#phoneNonce
    const keys = proto.PrimaryEphemeralIdentity.encode({ publicKey, nonce }).finish()
    this.#options.notify('crsc_continuation', node('primary_ephemeral_identity', {}, keys))
  }

  /** The client reveals its nonce only after it has the phone's, so that neither side can choose the code. */
  #reveal(companionNonce: Buffer): PasskeyAnswer {
    const committed = createHash('sha256').update(this.#identityBytes).update(companionNonce).digest()
    if (!committed.equals(this.#commitment)) return { error: '400' }
    this.#isCommitted = true
    const mask = createHash('sha256').update(companionNonce).update(this.#phone.publicKey).digest()
    const code = this.#phoneNonce.subarray(0, CODE_BYTES).map((byte, at) => byte ^ mask[at]!)
    this.#options.account.passkey.code = crockford(code)
    return undefined
  }

  #finish(request: Buffer): PasskeyAnswer {
    const { companion, takePlay, account } = this.#options
    if (!this.#isCommitted || !this.#identity) return { error: '400' }
    const { deviceType, ref, publicKey } = this.#identity
    try {
      const { encryptedPayload, iv } = proto.EncryptedPairingRequest.decode(request)
      const salt = Buffer.from(`Companion Pairing ${deviceType} with ref ${ref}`)
      const shared = agree(this.#phone.privateKey, publicKey!)
      const key = hkdf(shared, 'Pairing Information Encryption Key', KEY_BYTES, salt)
      const opened = proto.PairingRequest.decode(open(key, Buffer.from(iv!), Buffer.from(encryptedPayload!)))
      const { companionPublicKey, companionIdentityKey, advSecret } = opened
      if (!companion.noiseKey.equals(companionPublicKey!) || !companion.identity.equals(companionIdentityKey!))
        throw null
      if (advSecret?.length !== KEY_BYTES) throw null
      if (!takePlay('unfinished')) setImmediate(() => this.#finished.resolve(Buffer.from(advSecret)))
      account.passkey.code = null
      return undefined
    } catch {
      this.abandon(new SimulatorError('linking_failed', 'the phone could not read the request of the client'))
      return { error: '401' }
    }
  }
}

function open(key: Buffer, iv: Buffer, sealed: Buffer): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, iv).setAuthTag(sealed.subarray(-TAG_BYTES))
  return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()])
}

function crockford(data: Uint8Array): string {
  const bits = [...data].map(byte => byte.toString(2).padStart(8, '0')).join('')
  const groups = bits.match(new RegExp(`.{${BITS_PER_CHARACTER}}`, 'g')) ?? []
  return groups.map(group => ALPHABET[Number.parseInt(group, 2)]).join('')
}
