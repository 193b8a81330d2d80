import {
  type BinaryNode,
  decodeMessageNode,
  getBinaryNodeChildren,
  isJidMetaAI,
  proto,
  unpadRandomMax16,
  type WAMessage,
} from 'baileys'
import type { IncomingChange, IncomingMessage } from '../../../domain/incoming-message.ts'
import type { Self } from '../addresses.ts'
import { Correspondents } from '../correspondents.ts'
import { openContent } from '../parsing/content.ts'
import { type LidMapping, parseIncoming } from '../parsing/incoming.ts'
import type { LinkEvents } from './events.ts'
import type { LinkOptions } from './link-options.ts'
import { type Attributes, nameRecipient, ownReceipt } from './own-receipts.ts'
import { copiesIn, isUnencrypted, isWithheldViewOnce, orNull } from './phone-copies.ts'

const MAX_ID_LENGTH = 100

/** The padding of one byte, which every plaintext needs. */
const PADDING = 1
/** The padded placeholder for a view-once message whose content WhatsApp withholds. */
const VIEW_ONCE = Uint8Array.of(...proto.Message.encode({ viewOnceMessageV2: { message: {} } }).finish(), PADDING)

interface IncomingOptions extends Pick<LinkOptions, 'caches' | 'credentials' | 'logger' | 'retryBudgets'> {
  /** Whether messages may arrive without encryption, as on some simulated networks. */
  plaintext: boolean
  self(): Self
  mapping(): LidMapping
  events: Pick<LinkEvents, 'received' | 'isRecorded'>
}

/**
 * Reports incoming messages after their decryption. The stanza of a ciphertext is found by its byte array, which
 * Baileys passes to the Signal repository.
 */
export class IncomingMessages {
  readonly #options: IncomingOptions
  readonly #correspondents: Correspondents
  readonly #stanzas = new WeakMap<Uint8Array, BinaryNode>()
  readonly #standIns = new WeakSet<Uint8Array>()
  /** The message that Baileys handles: one at a time, until it has sent the receipt. */
  #current: BinaryNode | undefined

  constructor(options: IncomingOptions) {
    this.#options = options
    this.#correspondents = new Correspondents(options.credentials)
  }

  /** Call before Baileys handles the stanza. Changes the stanza. */
  note(stanza: BinaryNode): void {
    // Marks every message as pending. Baileys handles pending messages one by one, but live messages concurrently, so
    // live messages would overtake one another.
    stanza.attrs['offline'] ??= '0'
    if (stanza.attrs['recipient'] !== undefined) nameRecipient(stanza)
    if (this.#options.plaintext && isUnencrypted(stanza)) this.#wrap(stanza)
    if (isWithheldViewOnce(stanza)) this.#fillIn(stanza)
    for (const { content } of getBinaryNodeChildren(stanza, 'enc')) {
      if (content instanceof Uint8Array) this.#stanzas.set(content, stanza)
    }
  }

  /**
   * Puts a placeholder in the place of the withheld content. The message is then recorded like any other message, after
   * the earlier messages and before Baileys sends its receipt.
   */
  #fillIn(stanza: BinaryNode): void {
    stanza.content = [this.#standIn(stanza, Uint8Array.from(VIEW_ONCE))]
  }

  /** Puts a stand-in for a ciphertext in the place of the content, which is then recorded like any other message. */
  #wrap(stanza: BinaryNode): void {
    stanza.content = (stanza.content as BinaryNode[]).map(part => {
      const { tag, content } = part
      if (tag !== 'plaintext' || !(content instanceof Uint8Array)) return part
      return this.#standIn(stanza, Uint8Array.of(...content, PADDING))
    })
  }

  #standIn(stanza: BinaryNode, content: Uint8Array): BinaryNode {
    this.#standIns.add(content)
    // `getBinaryNodeChildren` would not find the new content, because it keeps an index of the old content.
    this.#stanzas.set(content, stanza)
    return { tag: 'enc', attrs: { type: 'msg', v: '2' }, content }
  }

  standInOf(ciphertext: Uint8Array): Uint8Array | undefined {
    return this.#standIns.has(ciphertext) ? ciphertext : undefined
  }

  /** Resolves when the message, and any copies in it, are recorded. */
  async decrypted(ciphertext: Uint8Array, plaintext: Uint8Array): Promise<void> {
    // If the plaintext is not a message, Baileys asks the sender to send the message again.
    const content = orNull(() => proto.Message.decode(unpadRandomMax16(plaintext)))
    const message = content && this.#messageOf(ciphertext, content)
    if (!message) return
    for (const one of [message, ...(await copiesIn(message, this.#options.caches.placeholderResendCache))]) {
      const incoming = await this.#parse(one)
      if (incoming) await this.#options.events.received(incoming)
      else this.#logEncryptedEdit(one)
    }
  }

  /** True if the message of this ciphertext is recorded. A contact can cause a limited number of these database queries. */
  async isRecorded(ciphertext: Uint8Array): Promise<boolean> {
    const { retryBudgets, events } = this.#options
    // Any content will do: it does not identify the message, but without content `#parse` returns null.
    const message = this.#messageOf(ciphertext, { conversation: '' })
    if (!message?.key.id || !retryBudgets.lookUps.take(message.key.id)) return false
    const incoming = await this.#parse(message)
    return incoming !== null && events.isRecorded(incoming)
  }

  /**
   * Call before Baileys sends a receipt. Changes its attributes. Baileys confuses an assistant with ourselves, and names no
   * sender if the recipient is named by number.
   */
  correct(receipt: Attributes): void {
    const right = this.#current && ownReceipt(this.#current, this.#options.self())
    if (!right || receipt['type'] !== right['type'] || receipt['id'] !== right['id']) return
    delete receipt['participant']
    Object.assign(receipt, right)
  }

  /** An edit may be encrypted with a secret of the message that it changes. That secret is not stored. */
  #logEncryptedEdit({ message }: WAMessage): void {
    const content = message?.deviceSentMessage?.message ?? message
    const whatsappId = openContent(content)?.secretEncryptedMessage?.targetMessageKey?.id
    if (whatsappId)
      this.#options.logger.info({ whatsappId: whatsappId.slice(0, MAX_ID_LENGTH) }, 'message.edit_unreadable')
  }

  #messageOf(ciphertext: Uint8Array, message: proto.IMessage): WAMessage | null {
    const stanza = this.#stanzas.get(ciphertext)
    this.#current = stanza
    if (!stanza) return null
    const { id = '', lid = '' } = this.#options.self()
    const { fullMessage } = decodeMessageNode(stanza, id, lid)
    const { key } = fullMessage
    const { recipient = '' } = stanza.attrs
    // Baileys takes our own message to an assistant for a message to ourselves.
    const assistant = key.fromMe && isJidMetaAI(recipient) && { remoteJid: recipient }
    // Baileys reads the sender's username in groups only.
    const username = stanza.attrs['username'] ?? key.remoteJidUsername
    return { ...fullMessage, key: { ...key, ...assistant, ...(username && { remoteJidUsername: username }) }, message }
  }

  #parse(message: WAMessage): Promise<IncomingMessage | IncomingChange | null> {
    return parseIncoming(message, this.#options.mapping(), this.#options.self(), this.#correspondents)
  }
}
