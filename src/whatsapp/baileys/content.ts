import { randomBytes } from 'node:crypto'
import { proto } from 'baileys'

/** WhatsApp derives report tokens and answers to polls from it; official clients send one with every message. */
const MESSAGE_SECRET_BYTES = 32

/** A text as it is encrypted for each device: made once, stored, and the same however often it is sent. */
export function encodeText(text: string): Uint8Array {
  return proto.Message.encode({
    extendedTextMessage: { text },
    messageContextInfo: { messageSecret: randomBytes(MESSAGE_SECRET_BYTES) },
  }).finish()
}

/** The content as Baileys takes it; encoding it again gives the same bytes. It keeps nothing of `content` alive. */
export function decodeContent(content: Uint8Array): proto.IMessage {
  return proto.Message.decode(new Uint8Array(content))
}
