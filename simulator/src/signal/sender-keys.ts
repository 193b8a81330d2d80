import { createDecipheriv } from 'node:crypto'
import {
  GroupCipher,
  GroupSessionBuilder,
  SenderKeyDistributionMessage,
  SenderKeyMessage,
  SenderKeyName,
  SenderKeyRecord,
  type SenderKeyState,
  type SenderMessageKey,
} from 'baileys/lib/Signal/Group/index.js'
import { BufferJSON } from 'baileys/lib/Utils/generics.js'
import { isSignedBy } from './keys.ts'

/** Stores a device's sessions and sender keys as text. */
export interface SessionStore {
  get(key: string): string | undefined
  put(key: string, value: string): void
}

const OWN = 'own'
const SIGNATURE_BYTES = 64
/** A message further ahead of the last one is refused. The limit is libsignal's. */
const MAX_SKIPPED = 2000

/** One device's keys for groups: its own, and those received from other devices. */
export class SenderKeys {
  readonly #store: SessionStore

  constructor(store: SessionStore) {
    this.#store = store
  }

  /**
   * The ciphertext for all members, and the key. Each member must get the key once, to read this and later messages.
   */
  async encrypt(group: string, message: Uint8Array): Promise<{ ciphertext: Buffer; distribution: Buffer }> {
    const name = senderKeyName(group, OWN)
    const distribution = (await new GroupSessionBuilder(this.#records).create(name)).serialize()
    const ciphertext = await new GroupCipher(this.#records, name).encrypt(message)
    return { ciphertext: Buffer.from(ciphertext), distribution: Buffer.from(distribution) }
  }

  async accept(group: string, peer: string, distribution: Uint8Array): Promise<void> {
    const message = new SenderKeyDistributionMessage(null, null, null, null, distribution)
    const name = senderKeyName(group, peer)
    const known = (await this.#records.loadSenderKey(name)).getSenderKeyState(message.getId())
    // Baileys would add the known key as a second state, and drop the first state with its keys for overtaken messages.
    if (known && Buffer.from(known.getSigningKeyPublic()).equals(message.getSignatureKey())) return
    await new GroupSessionBuilder(this.#records).process(name, message)
  }

  /**
   * Does the same as Baileys' GroupCipher, but checks the signature with Node's crypto. libsignal's check takes about 5 ms.
   * @throws Error if the sender's key is not known or the message does not match it
   */
  async decrypt(group: string, peer: string, ciphertext: Buffer): Promise<Buffer> {
    const name = senderKeyName(group, peer)
    const record = await this.#records.loadSenderKey(name)
    const message = new SenderKeyMessage(null, null, null, null, ciphertext)
    const state = record.getSenderKeyState(message.getKeyId())
    if (!state) throw new Error('unknown sender key')
    const signed = ciphertext.length - SIGNATURE_BYTES
    const signingKey = state.getSigningKeyPublic().subarray(1)
    if (!isSignedBy(signingKey, ciphertext.subarray(0, signed), ciphertext.subarray(signed))) {
      throw new Error('the signature does not match')
    }
    const key = messageKey(state, message.getIteration())
    const decipher = createDecipheriv('aes-256-cbc', key.getCipherKey(), key.getIv())
    const plaintext = Buffer.concat([decipher.update(message.getCipherText()), decipher.final()])
    await this.#records.storeSenderKey(name, record)
    return plaintext
  }

  readonly #records = {
    loadSenderKey: async (name: SenderKeyName): Promise<SenderKeyRecord> => {
      const stored = this.#store.get(`senderkey/${name.toString()}`)
      return stored === undefined ? new SenderKeyRecord() : SenderKeyRecord.deserialize(Buffer.from(stored))
    },
    storeSenderKey: async (name: SenderKeyName, record: SenderKeyRecord): Promise<void> => {
      this.#store.put(`senderkey/${name.toString()}`, JSON.stringify(record.serialize(), BufferJSON.replacer))
    },
  }
}

function senderKeyName(group: string, peer: string): SenderKeyName {
  return new SenderKeyName(group, { id: peer, deviceId: 0, toString: () => peer })
}

/** Advances the chain to the message's key and keeps the keys of skipped messages. */
function messageKey(state: SenderKeyState, iteration: number): SenderMessageKey {
  let chain = state.getSenderChainKey()
  if (chain.getIteration() > iteration) {
    const key = state.removeSenderMessageKey(iteration)
    if (!key) throw new Error('the key was already used')
    return key
  }
  if (iteration - chain.getIteration() > MAX_SKIPPED) throw new Error('too far ahead')
  while (chain.getIteration() < iteration) {
    state.addSenderMessageKey(chain.getSenderMessageKey())
    chain = chain.getNext()
  }
  state.setSenderChainKey(chain.getNext())
  return chain.getSenderMessageKey()
}
