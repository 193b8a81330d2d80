import { type BinaryNode, getBinaryNodeChildren } from 'baileys'
import type { MessageProgress } from '../../domain/message.ts'
import { isSelf, type Self } from './addresses.ts'

/** How far some of our messages got, as one receipt tells it; by WhatsApp's ids. */
export interface Receipt {
  whatsappIds: readonly string[]
  reached: MessageProgress
  /** Whose chat, or which group, it is about: nobody else can say anything of a message. */
  chat: string
}

/** A receipt and whom it is from. */
export interface SentReceipt extends Receipt {
  /** Addresses of the chat, as far as they are known. */
  from: readonly string[]
  /** The address that a message went to, if that is the chat's after all; null if not. */
  findAddress(whatsappId: string): Promise<string | null>
}

/**
 * Receipt types that tell of progress. `inactive` comes from a device that has the message and shows no presence;
 * `retry`, `server-error`, `peer_msg` and `hist_sync` tell of none.
 */
const REACHED: Readonly<Record<string, MessageProgress>> = {
  '': 'delivered',
  inactive: 'delivered',
  read: 'read',
  played: 'read',
  sender: 'sent',
}

/**
 * Reads a receipt from the wire. Not from Baileys' events: those merge receipts (a `read` swallows the `delivered`
 * before it, a late `delivered` hides a `read`), name the first group member for all, and come after WhatsApp was told
 * that we have them.
 * @returns null for a receipt that tells nothing about a message of ours
 */
export function parseReceipt(node: BinaryNode, self: Self): Receipt | null {
  const { id, from, participant, recipient, type = '' } = node.attrs
  const reached = REACHED[type]
  if (!reached || !id || !from) return null
  const grouped = getBinaryNodeChildren(node, 'participants')
  if (grouped.length > 0) return parseGrouped(grouped, reached, from, self)
  // Our own other devices receive and read too; that is nothing the recipient did. Without `recipient` it is a chat
  // with ourselves, where they are the recipient.
  const ownDevice = isSelf(participant ?? from, self)
  if (ownDevice && type !== 'sender' && (participant || recipient)) return null
  if (!ownDevice && type === 'sender') return null
  const [list] = getBinaryNodeChildren(node, 'list')
  const more = getBinaryNodeChildren(list, 'item').map(item => item.attrs['id'])
  const chat = (ownDevice && recipient) || from
  return { whatsappIds: [id, ...more.filter(one => one !== undefined)], reached, chat }
}

/** What many members say at once: a part for each message, which names the message and who of them it is from. */
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
