import { randomBytes } from 'node:crypto'
import { proto } from 'baileys/WAProto/index.js'
import { parseAddress } from '../addresses.ts'
import { type MediaMessage, mediaIn } from '../media/media-content.ts'
import { type MessageActions, SimulatorError } from '../types.ts'
import { actionsIn, textOf } from './conversation.ts'

/** The parts of a decrypted message that a simulated phone uses. */
export interface Content {
  text: string
  media: MediaMessage | null
  /** WhatsApp's ID of the message that it quotes. */
  quoted: string | null
  /** The numbers that it mentions. */
  mentions: string[]
  actions: MessageActions
  vote: proto.Message.IPollUpdateMessage | null
  /** A sender key for a group, if the message carries one. */
  senderKey: { group: string; distribution: Uint8Array } | null
  /** True if it contains anything besides a sender key. */
  isMessage: boolean
  /** The whole message as JSON, unless it is a file or a text without anything else. */
  details: Record<string, unknown> | null
  message: proto.IMessage
}

/** @throws Error if the bytes are not a message */
export function readContent(encoded: Uint8Array): Content {
  const outer = proto.Message.decode(encoded)
  const message = outer.deviceSentMessage?.message ?? outer
  const distribution = message.senderKeyDistributionMessage
  const { senderKeyDistributionMessage, messageContextInfo, ...rest } = message
  const inner = unwrapped(message)
  const context = contextOf(inner)
  const media = mediaIn(inner)
  return {
    text: textOf(inner),
    media,
    details: media ? null : detailsOf(rest),
    quoted: context?.stanzaId ?? null,
    mentions: (context?.mentionedJid ?? []).flatMap(jid => parseAddress(jid)?.number ?? []),
    actions: actionsIn(inner),
    vote: inner.pollUpdateMessage ?? null,
    senderKey: distribution?.axolotlSenderKeyDistributionMessage
      ? { group: distribution.groupId ?? '', distribution: distribution.axolotlSenderKeyDistributionMessage }
      : null,
    isMessage: Object.values(rest).some(part => part !== null && part !== undefined),
    message: messageContextInfo ? { ...rest, messageContextInfo } : rest,
  }
}

function detailsOf(message: proto.IMessage): Record<string, unknown> | null {
  const { conversation, extendedTextMessage: extended, ...others } = message
  const isPlain = !extended?.matchedText && !extended?.contextInfo?.mentionedJid?.length
  const hasOthers = Object.values(others).some(part => part !== null && part !== undefined)
  if (isPlain && !hasOthers) return null
  return proto.Message.toObject(proto.Message.fromObject(message), { bytes: String, longs: Number, enums: String })
}

/** Unwraps messages that only change how the message inside is shown. */
function unwrapped(message: proto.IMessage): proto.IMessage {
  const inner =
    message.ephemeralMessage ??
    message.viewOnceMessage ??
    message.viewOnceMessageV2 ??
    message.viewOnceMessageV2Extension ??
    message.editedMessage ??
    message.documentWithCaptionMessage
  return inner?.message ? unwrapped(inner.message) : message
}

function contextOf(message: proto.IMessage): proto.IContextInfo | null {
  for (const part of Object.values(message)) {
    const context = (part as { contextInfo?: proto.IContextInfo | null } | null)?.contextInfo
    if (context) return context
  }
  return null
}

/** @throws SimulatorError if the object is not a message */
export function readObject(content: object): proto.IMessage {
  try {
    const message = proto.Message.fromObject(content)
    if (readContent(encoded(message)).isMessage) return message
  } catch {
    // The error below reports it.
  }
  throw new SimulatorError(
    'invalid_argument',
    "`content` must be a message with the field names of WhatsApp's `Message`, such as `extendedTextMessage`",
  )
}

/** A text, which may quote a message. */
export function textMessage(text: string, contextInfo?: proto.IContextInfo): proto.IMessage {
  return contextInfo ? { extendedTextMessage: { text, contextInfo } } : { conversation: text }
}

export function encoded(message: proto.IMessage): Buffer {
  return Buffer.from(proto.Message.encode(message).finish())
}

/** The copy of a message that a phone sends to its own clients. */
export function sentContent(destinationJid: string, message: proto.IMessage): Buffer {
  return encoded({ deviceSentMessage: { destinationJid, message } })
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
