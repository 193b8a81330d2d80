import { type BinaryNode, getBinaryNodeChildren } from 'baileys'
import type { MessageProgress } from '../../../domain/message.ts'
import { isSelf, lidOf, numberOf, type Self } from '../addresses.ts'

/** The progress that one receipt reports for some of our messages, by their WhatsApp IDs. */
export interface Receipt {
  whatsappIds: readonly string[]
  reached: MessageProgress
  /** The chat or group of the messages. Receipts from other chats do not count for these messages. */
  chat: string
  /** The number in a receipt from a LID, if WhatsApp names it. */
  alternate?: string | undefined
}

export interface SentReceipt extends Receipt {
  /** The known addresses of the chat. */
  from: readonly string[]
  /** The address that a message was sent to. Null if it was not sent to this chat. */
  findAddress(whatsappId: string): Promise<string | null>
}

/**
 * Receipt types that report progress. `inactive` comes from a device that has the message but does not appear online.
 * `retry`, `server-error`, `peer_msg` and `hist_sync` report no progress.
 */
const REACHED: ReadonlyMap<string, MessageProgress> = new Map([
  ['', 'delivered'],
  ['inactive', 'delivered'],
  ['read', 'read'],
  ['played', 'read'],
  ['sender', 'sent'],
])

/**
 * Reads a receipt from its stanza. Baileys' events are unsuitable: they merge receipts (a `read` replaces the `delivered`
 * before it, a late `delivered` hides a `read`), name the first group member for all members, and are emitted after
 * Baileys has acknowledged the receipt to WhatsApp.
 * @returns null for a receipt that reports no progress of our messages
 */
export function parseReceipt(node: BinaryNode, self: Self): Receipt | null {
  const { id, from, participant, recipient, type = '' } = node.attrs
  const reached = REACHED.get(type)
  if (!reached || !id || !from) return null
  const grouped = getBinaryNodeChildren(node, 'participants')
  if (grouped.length > 0) return parseGrouped(grouped, reached, from, self)
  // Receipts of our own other devices say nothing about the recipient. Without `recipient`, the chat is the one with
  // ourselves, where our other devices are the recipient.
  const ownDevice = isSelf(participant ?? from, self)
  if (ownDevice && type !== 'sender' && (participant || recipient)) return null
  if (!ownDevice && type === 'sender') return null
  const [list] = getBinaryNodeChildren(node, 'list')
  const more = getBinaryNodeChildren(list, 'item').map(item => item.attrs['id'])
  const chat = (ownDevice && recipient) || from
  return {
    whatsappIds: [id, ...more.filter(one => one !== undefined)],
    reached,
    chat,
    alternate: ownDevice ? undefined : alternateOf(node),
  }
}

/** The number that WhatsApp names besides the LID of a person who sends a receipt. */
export function alternateOf({ attrs: { from, sender_pn } }: BinaryNode): string | undefined {
  return lidOf(from) === undefined || numberOf(sender_pn) === undefined ? undefined : sender_pn
}

/** A receipt of several group members: each part names one message and the members who report it. */
function parseGrouped(
  parts: readonly BinaryNode[],
  reached: MessageProgress,
  chat: string,
  self: Self,
): Receipt | null {
  const whatsappIds: string[] = []
  for (const part of parts) {
    const key = part.attrs['key']
    const others = getBinaryNodeChildren(part, 'user').filter(({ attrs }) => !isSelf(attrs['jid'], self))
    if (key && others.length > 0) whatsappIds.push(key)
  }
  return whatsappIds.length > 0 ? { whatsappIds, reached, chat } : null
}
