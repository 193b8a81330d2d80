import {
  type BinaryNode,
  decodeMessageNode,
  getBinaryNodeChildren,
  proto,
  unpadRandomMax16,
  type WAMessage,
} from 'baileys'
import type { Self } from '../addresses.ts'

/** Which stanza a ciphertext came in: Baileys hands the very same bytes to the Signal repository. */
export class Ciphertexts {
  readonly #stanzas = new WeakMap<Uint8Array, BinaryNode>()

  note(stanza: BinaryNode): void {
    for (const { content } of getBinaryNodeChildren(stanza, 'enc')) {
      if (content instanceof Uint8Array) this.#stanzas.set(content, stanza)
    }
  }

  /** The message that a ciphertext turned out to be; null for what another device of ours sent, and for what cannot be read. */
  messageIn(ciphertext: Uint8Array, plaintext: Uint8Array, { id = '', lid = '' }: Self): WAMessage | null {
    const stanza = this.#stanzas.get(ciphertext)
    if (!stanza || stanza.attrs['category'] === 'peer') return null
    let message: proto.IMessage
    try {
      message = proto.Message.decode(unpadRandomMax16(plaintext))
    } catch {
      // Not for us to judge: Baileys asks the sender to send it again.
      return null
    }
    const { fullMessage } = decodeMessageNode(stanza, id, lid)
    const { key } = fullMessage
    // Baileys reads the sender's user name in groups only.
    const username = stanza.attrs['username'] ?? key.remoteJidUsername
    return { ...fullMessage, key: { ...key, ...(username && { remoteJidUsername: username }) }, message }
  }
}
