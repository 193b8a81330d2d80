import { randomBytes } from 'node:crypto'
import { jidNormalizedUser, normalizeMessageContent, proto } from 'baileys'
import type { Command, MessageExtras, MessageReferenced } from '../../domain/conversation.ts'
import type { GroupDetails } from '../../domain/recipients/group.ts'
import { ownBytes } from '../../kit/own-bytes.ts'
import type { QuotedMessage, SentMessage } from '../../store/messages/messages.ts'
import { lidOf, type Self } from './addresses.ts'

/** WhatsApp derives report tokens and poll votes from the secret. Official clients send one with every message. */
const MESSAGE_SECRET_BYTES = 32
const CAPTIONED = ['imageMessage', 'videoMessage', 'documentMessage'] as const
const FILES = [...CAPTIONED, 'audioMessage', 'stickerMessage'] as const
const { MESSAGE_EDIT, REVOKE } = proto.Message.ProtocolMessage.Type

/** The content as an object for Baileys, which encodes to the same bytes again. It does not reference `content`. */
export function decodeContent(content: Uint8Array): proto.IMessage {
  return proto.Message.decode(new Uint8Array(content))
}

/** The content to send again: as it was last edited. */
export function decodeSent({ content, editedText }: SentMessage): proto.IMessage {
  const message = decodeContent(content)
  const shown = normalizeMessageContent(message)
  if (editedText === undefined || !shown) return message
  if (shown.extendedTextMessage) shown.extendedTextMessage.text = editedText
  for (const field of CAPTIONED) if (shown[field]) shown[field].caption = editedText
  return message
}

export interface ChatContext {
  /** WhatsApp's address of the chat. */
  address: string
  self: Self
  /** Null if the chat is not a group, or if nothing is known about the group. */
  group: Pick<GroupDetails, 'addressing' | 'disappearsAfter'> | null
  /** The addresses of the mentioned people. */
  mentioned: readonly string[]
  /** The content of the quoted message. Null if no message is quoted. */
  quoted: QuotedMessage | null
  /** A JPEG. Null or absent if the link preview has no image. */
  previewImage?: Uint8Array | null
  now: number
}

/**
 * The content of every message without a file (`encodeFile`): a text, with a quote and so on, or a command. It is encoded
 * once, before it is encrypted for each device, and stored, so every attempt sends the same bytes.
 */
export function encodeContent(text: string, extras: MessageExtras, context: ChatContext): Uint8Array {
  const { command } = extras
  return encodeWithSecret(
    command === undefined ? extendedText(text, extras, context) : commandContent(command, context),
  )
}

export function encodeWithSecret(message: proto.IMessage): Uint8Array {
  const messageContextInfo = { messageSecret: randomBytes(MESSAGE_SECRET_BYTES) }
  return ownBytes(proto.Message.encode({ ...message, messageContextInfo }).finish())
}

/** The mentions and the quote of a message with a text or a file, and the time after which it disappears. */
export function contextInfoOf({ quote }: MessageExtras, context: ChatContext): proto.IContextInfo | null {
  const { mentioned, quoted, group } = context
  const info = {
    ...(group && group.disappearsAfter > 0 && { expiration: group.disappearsAfter }),
    ...(mentioned.length > 0 && { mentionedJid: [...mentioned] }),
    ...(quote &&
      quoted && {
        stanzaId: quote.whatsappId,
        participant: quote.author ?? ownAddress(context),
        quotedMessage: quotedContent(quoted),
      }),
  }
  return Object.keys(info).length === 0 ? null : info
}

function extendedText(text: string, extras: MessageExtras, context: ChatContext): proto.IMessage {
  const { preview } = extras
  const contextInfo = contextInfoOf(extras, context)
  const { previewImage: jpegThumbnail } = context
  const shown = preview && {
    matchedText: preview.url,
    title: preview.title,
    description: preview.description ?? '',
    ...(jpegThumbnail && { jpegThumbnail }),
  }
  return { extendedTextMessage: { text, ...shown, contextInfo } }
}

/** The quotation that WhatsApp shows above an answer. Files are shown by their type and caption. */
function quotedContent({ content, type, text }: QuotedMessage): proto.IMessage {
  if (content !== null) {
    const { messageContextInfo: _, ...message } = normalizeMessageContent(proto.Message.decode(content)) ?? {}
    // WhatsApp does not nest quotations. The text may have been edited since.
    if (message.extendedTextMessage) return { conversation: text }
    for (const field of FILES) if (message[field]) message[field].contextInfo = null
    for (const field of CAPTIONED)
      if (message[field]) return { ...message, [field]: { ...message[field], caption: text || null } }
    return message
  }
  switch (type) {
    case 'image':
      return { imageMessage: { caption: text } }
    case 'video':
      return { videoMessage: { caption: text } }
    case 'audio':
      return { audioMessage: {} }
    case 'document':
      return { documentMessage: { caption: text } }
    case 'sticker':
      return { stickerMessage: {} }
    case 'location':
      return { locationMessage: {} }
    default:
      return { conversation: text }
  }
}

function commandContent(command: Command, context: ChatContext): proto.IMessage {
  const key = messageKey(command.target, context)
  switch (command.kind) {
    case 'reaction':
      return { reactionMessage: { key, text: command.emoji ?? '', senderTimestampMs: context.now } }
    case 'edit': {
      const editedMessage = { extendedTextMessage: { text: command.text } }
      return { protocolMessage: { key, type: MESSAGE_EDIT, editedMessage, timestampMs: context.now } }
    }
    case 'delete':
      return { protocolMessage: { key, type: REVOKE } }
    case 'read':
      throw new Error('A read mark has no content.')
  }
}

/** The key of a message as WhatsApp refers to it. */
export function messageKey(
  { whatsappId: id, author }: MessageReferenced,
  { address: remoteJid }: Pick<ChatContext, 'address'>,
) {
  const participant = remoteJid.endsWith('@g.us') && author !== null ? { participant: author } : {}
  return { remoteJid, fromMe: author === null, id, ...participant }
}

/** Our address, of the kind that the chat uses. */
function ownAddress({ address, self, group }: ChatContext): string {
  const usesLids = group?.addressing === 'lid' || lidOf(address) !== undefined
  return jidNormalizedUser((usesLids && self.lid) || self.id)
}

/** The attributes of the stanza that carries this content. */
export function stanzaAttributes({ protocolMessage }: proto.IMessage): Record<string, string> {
  if (protocolMessage?.type === MESSAGE_EDIT) return { edit: '1' }
  return protocolMessage?.type === REVOKE ? { edit: '7' } : {}
}
