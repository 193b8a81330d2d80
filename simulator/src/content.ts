import { randomBytes } from 'node:crypto'
import { proto } from 'baileys/WAProto/index.js'

/** What a decrypted message says, as far as a simulated phone cares. */
export interface Content {
  text: string
  /** A sender key for a group, when the message brings one. */
  senderKey: { group: string; distribution: Uint8Array } | null
  /** Whether there is anything in it beside a sender key. */
  isMessage: boolean
}

/** @throws Error when it is no message */
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

/** A content that brings a sender key, by itself or beside a message. */
export function withSenderKey(group: string, distribution: Buffer, content?: Buffer): Buffer {
  const message = content ? proto.Message.decode(content) : proto.Message.create()
  message.senderKeyDistributionMessage = { groupId: group, axolotlSenderKeyDistributionMessage: distribution }
  return Buffer.from(proto.Message.encode(message).finish())
}

const ID_BYTES = 9

/** A message id as an iPhone makes them. */
export function createMessageId(): string {
  return `3A${randomBytes(ID_BYTES).toString('hex').toUpperCase()}`
}
