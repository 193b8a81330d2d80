import {
  type BinaryNode,
  decodeMessageNode,
  getBinaryNodeChildren,
  proto,
  unpadRandomMax16,
  type WAMessage,
} from 'baileys'
import type { Self } from '../addresses.ts'

/** Finds the stanza of a ciphertext. Baileys passes the same byte array to the Signal repository. */
export class Ciphertexts {
  readonly #stanzas = new WeakMap<Uint8Array, BinaryNode>()

  note(stanza: BinaryNode): void {
    for (const { content } of getBinaryNodeChildren(stanza, 'enc')) {
      if (content instanceof Uint8Array) this.#stanzas.set(content, stanza)
    }
  }

  /** The decrypted message. Null if it cannot be parsed. */
  messageIn(ciphertext: Uint8Array, plaintext: Uint8Array, { id = '', lid = '' }: Self): WAMessage | null {
    const stanza = this.#stanzas.get(ciphertext)
    if (!stanza) return null
    let message: proto.IMessage
    try {
      message = proto.Message.decode(unpadRandomMax16(plaintext))
    } catch {
      // Baileys handles this case: it asks the sender to send the message again.
      return null
    }
    const { fullMessage } = decodeMessageNode(stanza, id, lid)
    const { key } = fullMessage
    // Baileys reads the sender's username in groups only.
    const username = stanza.attrs['username'] ?? key.remoteJidUsername
    return { ...fullMessage, key: { ...key, ...(username && { remoteJidUsername: username }) }, message }
  }
}
