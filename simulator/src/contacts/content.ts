import { randomBytes } from 'node:crypto'
import { proto } from 'baileys/WAProto/index.js'

/** The parts of a decrypted message that a simulated phone uses. */
export interface Content {
  text: string
  /** A sender key for a group, if the message carries one. */
  senderKey: { group: string; distribution: Uint8Array } | null
  /** True if it contains anything besides a sender key. */
  isMessage: boolean
}

/** @throws Error if the bytes are not a message */
export function readContent(encoded: Uint8Array): Content {
  const outer = proto.Message.decode(encoded)
  const message = outer.deviceSentMessage?.message ?? outer
  const distribution = message.senderKeyDistributionMessage
  const { senderKeyDistributionMessage, messageContextInfo, ...rest } = message
  return {
    text: message.conversation || message.extendedTextMessage?.text || '',
    senderKey: distribution?.axolotlSenderKeyDistributionMessage
      ? { group: distribution.groupId ?? '', distribution: distribution.axolotlSenderKeyDistributionMessage }
      : null,
    isMessage: Object.values(rest).some(part => part !== null && part !== undefined),
  }
}

export function textContent(text: string): Buffer {
  return Buffer.from(proto.Message.encode({ conversation: text }).finish())
}

/** The copy of a text that a phone sends to its own clients. */
export function sentContent(destinationJid: string, text: string): Buffer {
  const deviceSentMessage = { destinationJid, message: { conversation: text } }
  return Buffer.from(proto.Message.encode({ deviceSentMessage }).finish())
}

/** Content that carries a sender key, alone or with a message. */
export function withSenderKey(group: string, distribution: Buffer, content?: Buffer): Buffer {
  const message = content ? proto.Message.decode(content) : proto.Message.create()
  message.senderKeyDistributionMessage = { groupId: group, axolotlSenderKeyDistributionMessage: distribution }
  return Buffer.from(proto.Message.encode(message).finish())
}

const ID_BYTES = 9

/** A message ID in the format of an iPhone. */
export function createMessageId(): string {
  return `3A${randomBytes(ID_BYTES).toString('hex').toUpperCase()}`
}
