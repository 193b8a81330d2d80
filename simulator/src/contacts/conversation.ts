/** Messages that act on another message: a reaction, an edit, a deletion, a vote. Reads and writes them as phones do. */
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto'
import { proto } from 'baileys/WAProto/index.js'
import { lidJid, parseAddress } from '../addresses.ts'
import type { MessageActions } from '../types.ts'

const { REVOKE, MESSAGE_EDIT } = proto.Message.ProtocolMessage.Type
/** As in WhatsApp's own apps: how long after a message was sent its author can edit it, and it can be deleted for everyone. */
export const EDIT_WITHIN_MS = 15 * 60_000
export const DELETE_WITHIN_MS = 60 * 3_600_000
const IV_BYTES = 12
const TAG_BYTES = 16
const SECRET_BYTES = 32

/** A message that another one refers to. */
export interface Target {
  id: string
  /** Number of its author. */
  author: string
  /** The group that it was written in. */
  group?: string | undefined
}

/** How `writer`, who writes to `account`, names the message. */
export function keyOf({ id, author, group }: Target, writer: string, account: string): proto.IMessageKey {
  const fromMe = author === writer
  if (group) return { remoteJid: group, fromMe, id, participant: lidJid(author) }
  return { remoteJid: lidJid(account), fromMe, id }
}

export function reactionMessage(key: proto.IMessageKey, emoji: string): proto.IMessage {
  return { reactionMessage: { key, text: emoji, senderTimestampMs: Date.now() } }
}

/** Unlike Baileys, phones add one more wrapper around an edit. */
export function editMessage(key: proto.IMessageKey, editedMessage: proto.IMessage): proto.IMessage {
  const protocolMessage = { key, type: MESSAGE_EDIT, editedMessage, timestampMs: Date.now() }
  return { editedMessage: { message: { protocolMessage } } }
}

export function deletionMessage(key: proto.IMessageKey): proto.IMessage {
  return { protocolMessage: { key, type: REVOKE } }
}

export function pollMessage(name: string, options: readonly string[], selectable: number): proto.IMessage {
  const poll = { name, options: options.map(optionName => ({ optionName })), selectableOptionsCount: selectable }
  const messageContextInfo = { messageSecret: randomBytes(SECRET_BYTES) }
  return { messageContextInfo, ...(selectable === 1 ? { pollCreationMessageV3: poll } : { pollCreationMessage: poll }) }
}

/** @param poll the encoded message with the poll */
export function voteMessage(
  key: proto.IMessageKey,
  target: Target,
  voter: string,
  poll: Buffer,
  options: readonly string[],
): proto.IMessage {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', voteKey(target, lidJid(voter), secretOf(poll)), iv)
  cipher.setAAD(Buffer.from(`${target.id}\0${lidJid(voter)}`))
  const plain = proto.Message.PollVoteMessage.encode({ selectedOptions: options.map(digest) }).finish()
  const encPayload = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  const vote = { encPayload, encIv: iv }
  return { pollUpdateMessage: { pollCreationMessageKey: key, vote, senderTimestampMs: Date.now() } }
}

/** The chosen options of a vote. Null if they cannot be read. */
export function readVote(update: proto.Message.IPollUpdateMessage, target: Target, voter: string, poll: Buffer) {
  const { encPayload, encIv } = update.vote ?? {}
  if (!encPayload || !encIv) return null
  const jid = lidJid(voter)
  try {
    const decipher = createDecipheriv('aes-256-gcm', voteKey(target, jid, secretOf(poll)), encIv)
    decipher.setAAD(Buffer.from(`${target.id}\0${jid}`))
    decipher.setAuthTag(encPayload.subarray(-TAG_BYTES))
    const plain = Buffer.concat([decipher.update(encPayload.subarray(0, -TAG_BYTES)), decipher.final()])
    const chosen = (proto.Message.PollVoteMessage.decode(plain).selectedOptions ?? []).map(one => Buffer.from(one))
    return optionsOf(poll).filter(option => chosen.some(one => one.equals(digest(option))))
  } catch {
    return null
  }
}

export function optionsOf(poll: Buffer): string[] {
  return pollIn(proto.Message.decode(poll))?.options ?? []
}

function pollIn(message: proto.IMessage): MessageActions['poll'] {
  const poll = message.pollCreationMessage ?? message.pollCreationMessageV2 ?? message.pollCreationMessageV3
  if (!poll) return undefined
  return { name: poll.name ?? '', options: (poll.options ?? []).map(({ optionName }) => optionName ?? '') }
}

/** The effect of an unwrapped message on another one, if it has any. */
export function actionsIn(message: proto.IMessage): MessageActions {
  const { reactionMessage: reaction, protocolMessage: change, pollUpdateMessage: vote } = message
  const poll = pollIn(message)
  const changed = change?.key?.id ?? ''
  const author = change?.key?.fromMe ? undefined : parseAddress(change?.key?.participant ?? undefined)?.number
  return {
    ...(reaction && { reaction: { to: reaction.key?.id ?? '', emoji: reaction.text ?? '' } }),
    ...(change?.type === MESSAGE_EDIT && { edit: { id: changed, text: textOf(change.editedMessage ?? {}) } }),
    ...(change &&
      Number(change.type ?? 0) === REVOKE &&
      change.key && { deletes: changed, ...(author && { deletesOf: author }) }),
    ...(poll && { poll }),
    ...(vote && { vote: { poll: vote.pollCreationMessageKey?.id ?? '', options: null } }),
  }
}

export function textOf(message: proto.IMessage): string {
  return message.conversation || message.extendedTextMessage?.text || ''
}

function secretOf(poll: Buffer): Uint8Array {
  return proto.Message.decode(poll).messageContextInfo?.messageSecret ?? Buffer.alloc(SECRET_BYTES)
}

function voteKey({ id, author }: Target, voter: string, secret: Uint8Array): Buffer {
  const purpose = Buffer.concat([Buffer.from(`${id}${lidJid(author)}${voter}Poll Vote`), Buffer.from([1])])
  const extracted = createHmac('sha256', Buffer.alloc(SECRET_BYTES)).update(secret).digest()
  return createHmac('sha256', extracted).update(purpose).digest()
}

function digest(option: string): Buffer {
  return createHash('sha256').update(option).digest()
}
