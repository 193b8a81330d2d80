import { randomBytes } from 'node:crypto'
import { proto } from 'baileys'
import type { MessageContent } from '../../../domain/message.ts'
import { ownBytes } from '../../../kit/own-bytes.ts'

/** WhatsApp derives report tokens and poll votes from the secret. Official clients send one with every message. */
export const MESSAGE_SECRET_BYTES = 32

/** The content that is encrypted for each device. It is encoded once and stored, so every attempt sends the same bytes. */
export function encodeContent({ text }: MessageContent): Uint8Array {
  const message = {
    extendedTextMessage: { text },
    messageContextInfo: { messageSecret: randomBytes(MESSAGE_SECRET_BYTES) },
  }
  return ownBytes(proto.Message.encode(message).finish())
}

/** The content as an object for Baileys, which encodes to the same bytes again. It does not reference `content`. */
export function decodeContent(content: Uint8Array): proto.IMessage {
  return proto.Message.decode(new Uint8Array(content))
}
