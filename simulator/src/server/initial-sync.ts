/** The phone sends a newly linked client the key of the shared settings, and the phone's chats. */
import { deflateSync } from 'node:zlib'
import { proto } from 'baileys/WAProto/index.js'
import type { Account, Effect } from '../account.ts'
import { lidJid, parseAddress, pnJid } from '../addresses.ts'
import { KEY_ID, settingsKey, settingsOfChats } from '../app-state/phone.ts'
import { enc, encryptForClient } from '../contacts/contact-messages.ts'
import { createMessageId, encoded } from '../contacts/content.ts'
import type { Network } from '../network.ts'
import { node, seconds } from '../wire/nodes.ts'
import { release } from './delivery.ts'
import { infoOf, messagesByChat } from './history.ts'

const { APP_STATE_SYNC_KEY_SHARE, HISTORY_SYNC_NOTIFICATION } = proto.Message.ProtocolMessage.Type
const { INITIAL_BOOTSTRAP, PUSH_NAME, RECENT } = proto.HistorySync.HistorySyncType

/** Queues nothing if the sync was sent to this client before. Call it inside `account.apply` or `applyDurably`. */
export async function initialSync(network: Network, account: Account): Promise<Effect[]> {
  if (!network.syncsAfterLinking || !account.companion || account.companion.synced) return []
  account.markSynced()
  const effects: Effect[] = []
  for (const protocolMessage of [keyShare(account), ...(await history(network, account))]) {
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

async function history(network: Network, account: Account): Promise<proto.Message.IProtocolMessage[]> {
  const settings = await settingsOfChats(account)
  const conversations = conversationsOf(network, account).map(one => ({ ...one, ...settings.get(one.id) }))
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

function conversationsOf(network: Network, account: Account): (proto.IConversation & { id: string })[] {
  return Array.from(messagesByChat(network, account), ([id, messages]) => {
    const number = parseAddress(id)?.number
    const own = messages.findIndex(({ from }) => from === account.phone)
    return {
      id,
      conversationTimestamp: Math.floor(messages[0]!.receivedAt / 1000),
      unreadCount: own === -1 ? messages.length : own,
      ...(number !== undefined && { pnJid: pnJid(number), lidJid: id }),
      messages: messages.map(message => ({ message: infoOf(network, account, id, message) })),
    }
  })
}
