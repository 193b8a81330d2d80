/** What the phone sends a newly linked client: the key of the shared settings, and the chats that it has. */
import { deflateSync } from 'node:zlib'
import { proto } from 'baileys/WAProto/index.js'
import type { Account, Effect } from '../account.ts'
import { lidJid, pnJid } from '../addresses.ts'
import { enc, encryptForClient } from '../contacts/contact-messages.ts'
import { createMessageId, encoded } from '../contacts/content.ts'
import type { Network } from '../network.ts'
import type { ReceivedMessage } from '../types.ts'
import { node, seconds } from '../wire/nodes.ts'
import { KEY_ID, settingsKey } from './address-book.ts'
import { release } from './delivery.ts'

const { APP_STATE_SYNC_KEY_SHARE, HISTORY_SYNC_NOTIFICATION } = proto.Message.ProtocolMessage.Type
const { INITIAL_BOOTSTRAP, PUSH_NAME, RECENT } = proto.HistorySync.HistorySyncType

/** Queues nothing if the client has got it before. Call it in an event of the account. */
export async function initialSync(network: Network, account: Account): Promise<Effect[]> {
  if (!network.syncsAfterLinking || !account.companion || account.companion.synced) return []
  account.markSynced()
  const effects: Effect[] = []
  for (const protocolMessage of [keyShare(account), ...history(account)]) {
    const content = encoded({ protocolMessage })
    const sent = enc(await encryptForClient(network, account, account.phone, content, effects))
    const now = Date.now()
    const from = { from: lidJid(account.phone), category: 'peer', notify: account.name }
    const stanza = node('message', { ...from, id: createMessageId(), t: seconds(now), type: 'text' }, [sent])
    effects.push(release(network, account, account.queue.add(stanza, now, { from: account.phone, content })))
  }
  return effects
}

function keyShare(account: Account): proto.Message.IProtocolMessage {
  const appStateSyncKeyShare = { keys: [{ keyId: { keyId: KEY_ID }, keyData: settingsKey(account) }] }
  return { type: APP_STATE_SYNC_KEY_SHARE, appStateSyncKeyShare }
}

function history(account: Account): proto.Message.IProtocolMessage[] {
  const conversations = conversationsOf(account)
  const pushnames = Array.from(account.contactNames, ([number, pushname]) => ({ id: lidJid(number), pushname }))
  const numbers = new Set(account.inboxes.list(account.phone).map(({ from }) => from))
  const phoneNumberToLidMappings = Array.from(numbers, number => ({ pnJid: pnJid(number), lidJid: lidJid(number) }))
  return [
    chunk({ syncType: INITIAL_BOOTSTRAP, conversations, phoneNumberToLidMappings }, 1),
    chunk({ syncType: PUSH_NAME, pushnames }, 2),
    chunk({ syncType: RECENT, progress: 100 }, 3),
  ]
}

export function chunk(
  given: Omit<proto.IHistorySync, 'chunkOrder'>,
  chunkOrder: number,
): proto.Message.IProtocolMessage {
  const payload = proto.HistorySync.encode({ ...given, chunkOrder, progress: 100 }).finish()
  const historySyncNotification = {
    syncType: given.syncType as number,
    chunkOrder,
    progress: 100,
    initialHistBootstrapInlinePayload: deflateSync(payload),
  }
  return { type: HISTORY_SYNC_NOTIFICATION, historySyncNotification }
}

/** The messages that the phone got before, the newest of each chat first. */
function conversationsOf(account: Account): proto.IConversation[] {
  const chats = new Map<string, ReceivedMessage[]>()
  for (const message of account.inboxes.list(account.phone)) {
    const chat = message.group ?? lidJid(message.from)
    const messages = chats.get(chat) ?? []
    messages.unshift(message)
    chats.set(chat, messages)
  }
  return Array.from(chats, ([id, messages]) => ({
    id,
    conversationTimestamp: Math.floor(messages[0]!.receivedAt / 1000),
    unreadCount: messages.length,
    ...(!messages[0]!.group && { pnJid: pnJid(messages[0]!.from), lidJid: id }),
    messages: messages.map(message => ({
      message: infoOf(account, id, message, account.inboxes.contentOf(message.id)),
    })),
  }))
}

export function infoOf(
  account: Account,
  chat: string,
  { id, from, group, text, receivedAt }: ReceivedMessage,
  content: Uint8Array | null,
) {
  const fromMe = from === account.phone
  return {
    key: { remoteJid: chat, fromMe, id, ...(group && { participant: lidJid(from) }) },
    message: content ? proto.Message.decode(content) : { conversation: text },
    messageTimestamp: Math.floor(receivedAt / 1000),
    pushName: account.contactNames.get(from) ?? null,
  }
}
