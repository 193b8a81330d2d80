/** The messages that a phone has: those it got, and those that its owner or its client wrote. */
import { proto } from 'baileys/WAProto/index.js'
import type { Account } from '../account.ts'
import { lidJid } from '../addresses.ts'
import type { Network } from '../network.ts'
import type { ReceivedMessage } from '../types.ts'

/** The messages of each chat, the newest first, without deleted ones and those that change another message. */
export function messagesByChat(network: Network, account: Account): Map<string, ReceivedMessage[]> {
  const chats = new Map<string, Map<string, ReceivedMessage>>()
  for (const [chat, message] of messagesOf(network, account)) {
    const messages = chats.get(chat) ?? new Map<string, ReceivedMessage>()
    if (!message.deleted && !changesAnother(message)) chats.set(chat, messages.set(message.id, message))
  }
  return new Map(
    Array.from(chats, ([chat, messages]) => [
      chat,
      // Of the messages of one millisecond, the last one of the list is the newest.
      [...messages.values()].toReversed().toSorted((one, other) => other.receivedAt - one.receivedAt),
    ]),
  )
}

/** The messages with these IDs, as far as the phone has them. */
export function infosOf(network: Network, account: Account, ids: ReadonlySet<string>): proto.IWebMessageInfo[] {
  const infos = new Map<string, proto.IWebMessageInfo>()
  for (const [chat, message] of messagesOf(network, account))
    if (ids.has(message.id)) infos.set(message.id, infoOf(network, account, chat, message))
  return [...infos.values()]
}

/** Each message with its chat. The messages that the account wrote are in the inboxes of their recipients. */
function* messagesOf(network: Network, { phone, inboxes }: Account): Generator<[chat: string, ReceivedMessage]> {
  for (const message of inboxes.list(phone)) yield [message.group ?? lidJid(message.from), message]
  for (const scope of new Set([inboxes, ...network.accounts().map(other => other.inboxes)]))
    for (const { reader, message } of scope.writtenBy(phone)) yield [message.group ?? lidJid(reader), message]
}

function changesAnother({ details = {} }: ReceivedMessage): boolean {
  return 'reactionMessage' in details || 'protocolMessage' in details
}

export function infoOf(
  network: Network,
  account: Account,
  chat: string,
  { id, from, group, text, edited, receivedAt }: ReceivedMessage,
): proto.IWebMessageInfo {
  const fromMe = from === account.phone
  const known = account.inboxes.contentOf(id) ?? contentElsewhere(network, id)
  const content = edited === undefined ? known : null
  return {
    key: { remoteJid: chat, fromMe, id, ...(group && { participant: lidJid(from) }) },
    message: content ? proto.Message.decode(content) : { conversation: edited ?? text },
    messageTimestamp: Math.floor(receivedAt / 1000),
    pushName: account.contactNames.get(from) ?? null,
  }
}

function contentElsewhere(network: Network, id: string): Uint8Array | null {
  return network.accounts().flatMap(other => other.inboxes.contentOf(id) ?? [])[0] ?? null
}
