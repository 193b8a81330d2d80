import { randomBytes, randomInt } from 'node:crypto'
import { ProtocolAddress, SessionBuilder, SessionRecord, type SignalStorage } from 'libsignal'
import { deriveKeyPair, hkdf, type KeyPair, sign, typed } from './keys.ts'
import { SenderKeys, type SessionStore } from './sender-keys.ts'
import { WholeSessionCipher } from './whole-session-cipher.ts'

/** A public pre-key, with the ID that its device gave it. */
export interface PreKey {
  id: number
  publicKey: Buffer
}

export interface SignedPreKey extends PreKey {
  signature: Buffer
}

/** The public keys of one device. Others need them to write to it. */
export interface KeyBundle {
  registrationId: number
  identity: Buffer
  signedPreKey: SignedPreKey
  /** Missing when the device's one-time keys have run out. */
  preKey?: PreKey | undefined
}

export interface Encrypted {
  type: 'pkmsg' | 'msg'
  ciphertext: Buffer
}

const SIGNED_PRE_KEY_ID = 1
const MAX_KEY_ID = 0xffffff
const MAX_REGISTRATION_ID = 0x3fff
const PRE_KEY_MESSAGE = 3
const MAX_PADDING = 16

let devicesMade = 0

/**
 * One simulated device: its keys, derived from a secret and therefore not stored, and its sessions with other devices.
 * A peer is named `number.device`. Only one operation may run at a time; callers ensure this.
 */
export class SignalDevice {
  readonly identity: KeyPair
  readonly #secret: Buffer
  readonly #registrationId: number
  readonly #signedPreKey: KeyPair
  /** Made on demand: signing takes milliseconds, and many devices are never asked for their keys. */
  #signature: Buffer | null = null
  readonly #store: SessionStore
  readonly #senderKeys: SenderKeys
  /** libsignal queues its work by address in one map per process. A unique prefix keeps devices apart. */
  readonly #prefix = `sim${++devicesMade}`
  readonly #sessions = new Map<string, SessionRecord>()
  readonly #signalStorage: SignalStorage

  constructor(secret: Buffer, store: SessionStore) {
    this.#secret = secret
    this.#store = store
    this.#senderKeys = new SenderKeys(store)
    this.identity = deriveKeyPair(secret, 'identity')
    this.#signedPreKey = deriveKeyPair(secret, 'signed pre-key')
    this.#registrationId = (hkdf(secret, 'registration', 2).readUInt16BE() % MAX_REGISTRATION_ID) + 1
    this.#signalStorage = this.#createSignalStorage()
  }

  /** Each bundle has its own one-time key. */
  bundle(): KeyBundle {
    const id = randomInt(1, MAX_KEY_ID)
    this.#signature ??= sign(this.identity.privateKey, typed(this.#signedPreKey.publicKey))
    return {
      registrationId: this.#registrationId,
      identity: this.identity.publicKey,
      signedPreKey: {
        id: SIGNED_PRE_KEY_ID,
        publicKey: this.#signedPreKey.publicKey,
        signature: this.#signature,
      },
      preKey: { id, publicKey: this.#preKey(id).publicKey },
    }
  }

  hasSession(peer: string): boolean {
    return this.#session(peer)?.haveOpenSession() ?? false
  }

  async openSession(peer: string, bundle: KeyBundle): Promise<void> {
    await new SessionBuilder(this.#signalStorage, this.#address(peer)).initOutgoing({
      registrationId: bundle.registrationId,
      identityKey: typed(bundle.identity),
      signedPreKey: {
        keyId: bundle.signedPreKey.id,
        publicKey: typed(bundle.signedPreKey.publicKey),
        signature: bundle.signedPreKey.signature,
      },
      // libsignal's types require a one-time key; its code does not.
      ...(bundle.preKey && { preKey: { keyId: bundle.preKey.id, publicKey: typed(bundle.preKey.publicKey) } }),
    } as Parameters<SessionBuilder['initOutgoing']>[0])
  }

  async encrypt(peer: string, message: Uint8Array): Promise<Encrypted> {
    const { type, body } = await new WholeSessionCipher(this.#signalStorage, this.#address(peer)).encrypt(pad(message))
    // libsignal's types say string; the value is a Buffer.
    return { type: type === PRE_KEY_MESSAGE ? 'pkmsg' : 'msg', ciphertext: Buffer.from(body as unknown as Buffer) }
  }

  /** @throws Error if it matches no session; the sessions are then unchanged */
  async decrypt(peer: string, type: string, ciphertext: Buffer): Promise<Buffer> {
    const cipher = new WholeSessionCipher(this.#signalStorage, this.#address(peer))
    try {
      if (type === 'pkmsg') return unpad(await cipher.decryptPreKeyWhisperMessage(ciphertext))
      return unpad(await cipher.decryptWhisperMessage(ciphertext))
    } catch (error) {
      this.#sessions.delete(peer)
      throw error
    }
  }

  async encryptForGroup(group: string, message: Uint8Array): ReturnType<SenderKeys['encrypt']> {
    return this.#senderKeys.encrypt(group, pad(message))
  }

  async acceptSenderKey(group: string, peer: string, distribution: Uint8Array): Promise<void> {
    await this.#senderKeys.accept(group, peer, distribution)
  }

  async decryptFromGroup(group: string, peer: string, ciphertext: Buffer): Promise<Buffer> {
    return unpad(await this.#senderKeys.decrypt(group, peer, ciphertext))
  }

  #preKey(id: number): KeyPair {
    return deriveKeyPair(this.#secret, `pre-key ${id}`)
  }

  #address(peer: string): ProtocolAddress {
    const [number, device] = peer.split('.')
    return new ProtocolAddress(`${this.#prefix}-${number}`, Number(device))
  }

  #session(peer: string): SessionRecord | undefined {
    const known = this.#sessions.get(peer)
    if (known) return known
    const stored = this.#store.get(`session/${peer}`)
    if (stored === undefined) return undefined
    const record = SessionRecord.deserialize(JSON.parse(stored))
    this.#sessions.set(peer, record)
    return record
  }

  #createSignalStorage(): SignalStorage {
    const peerOf = (address: string) => address.slice(this.#prefix.length + 1)
    return {
      loadSession: async address => this.#session(peerOf(address)),
      storeSession: async (address, record) => {
        this.#sessions.set(peerOf(address), record)
        this.#store.put(`session/${peerOf(address)}`, JSON.stringify(record.serialize()))
      },
      isTrustedIdentity: () => true,
      loadPreKey: async id => pairForSignal(this.#preKey(Number(id))),
      removePreKey: () => undefined,
      loadSignedPreKey: () => pairForSignal(this.#signedPreKey),
      getOurRegistrationId: () => this.#registrationId,
      getOurIdentity: () => pairForSignal(this.identity),
    }
  }
}

function pairForSignal(pair: KeyPair): { privKey: Buffer; pubKey: Buffer } {
  return { privKey: pair.privateKey, pubKey: typed(pair.publicKey) }
}

function pad(message: Uint8Array): Buffer {
  const length = (randomBytes(1)[0]! % MAX_PADDING) + 1
  return Buffer.concat([message, Buffer.alloc(length, length)])
}

function unpad(padded: Uint8Array): Buffer {
  const length = padded[padded.length - 1] ?? 0
  if (length > padded.length) throw new Error('padding longer than the message')
  return Buffer.from(padded.subarray(0, padded.length - length))
}
