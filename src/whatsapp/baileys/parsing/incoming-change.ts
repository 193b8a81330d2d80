import { proto, type WAMessage } from 'baileys'
import type { IncomingChange } from '../../../domain/incoming-message.ts'
import { isSelf, type Self, userOf } from '../addresses.ts'
import { openContent } from './content.ts'

const { MESSAGE_EDIT, REVOKE } = proto.Message.ProtocolMessage.Type
const MAX_ID_LENGTH = 100

type ParsedChange = Pick<IncomingChange, 'change' | 'target' | 'ofOwn' | 'byAdmin' | 'text'> & {
  /** The address of the author, if the change deletes somebody else's message in a group. */
  authorJid?: string
}

/** The edit or deletion in a message. Null if there is none. @param textOf returns the text of the new content */
export function parseChange(
  { key }: WAMessage,
  wrapped: proto.IMessage | null | undefined,
  { group, isOwn, self }: { group: boolean; isOwn: boolean; self: Self },
  textOf: (content: proto.IMessage) => string | undefined | null,
): ParsedChange | null {
  const { protocolMessage } = openContent(wrapped) ?? {}
  const target = protocolMessage?.key
  if (!protocolMessage || !target?.id) return null
  const reference = { target: target.id.slice(0, MAX_ID_LENGTH) }
  // The type of a deletion is 0, which need not be encoded.
  if ((protocolMessage.type ?? REVOKE) === REVOKE) {
    const isOfAnother = group && !target.fromMe && isForeign(target.participant, key)
    const ofOwn = isOwn ? target.fromMe !== false : isOfAnother && isSelf(target.participant, self)
    const authorJid = isOfAnother && !ofOwn && target.participant
    const byAdmin = isOfAnother && !isOwn
    return { change: 'delete', ...reference, ofOwn, ...(byAdmin && { byAdmin }), ...(authorJid && { authorJid }) }
  }
  if (protocolMessage.type !== MESSAGE_EDIT || !protocolMessage.editedMessage) return null
  const text = textOf(protocolMessage.editedMessage)
  return text === null ? null : { change: 'edit', ...reference, ofOwn: isOwn, ...(text !== undefined && { text }) }
}

/** Whether the author of the target is somebody other than the sender. */
function isForeign(participant: string | null | undefined, { participant: sender, participantAlt }: WAMessage['key']) {
  const author = userOf(participant)
  return author !== undefined && author !== userOf(sender) && author !== userOf(participantAlt)
}
