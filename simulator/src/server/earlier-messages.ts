/** On request, the phone sends its client earlier messages of a chat, in both directions. */
import { proto } from 'baileys/WAProto/index.js'
import type { Account } from '../account.ts'
import { lidJid, parseAddress, pnJid } from '../addresses.ts'
import type { Network } from '../network.ts'
import { infoOf, messagesByChat } from './history.ts'
import { chunk } from './initial-sync.ts'

type Request = proto.Message.PeerDataOperationRequestMessage.IHistorySyncOnDemandRequest

const { ON_DEMAND } = proto.HistorySync.HistorySyncType
/** WhatsApp's phones send at most this many at once. */
const MAX_MESSAGES = 50
/**
 * Baileys passes on the time as its caller gives it, in seconds or milliseconds. From this number on, it is
 * milliseconds.
 */
const MILLISECONDS_FROM = 1e12

/** @param session the ID of the request */
export function earlierMessages(
  network: Network,
  account: Account,
  { chatJid, oldestMsgId, oldestMsgTimestampMs, onDemandMsgCount }: Request,
  session: string,
): proto.Message.IProtocolMessage {
  const number = parseAddress(chatJid ?? undefined)?.number
  const id = number === undefined ? (chatJid ?? '') : lidJid(number)
  const all = messagesByChat(network, account).get(id) ?? []
  const at = Number(oldestMsgTimestampMs ?? 0)
  const before = at < MILLISECONDS_FROM ? at * 1000 : at
  const oldest = all.findIndex(message => message.id === oldestMsgId)
  const earlier = oldest === -1 ? all.filter(({ receivedAt }) => receivedAt < before) : all.slice(oldest + 1)
  const messages = earlier.slice(0, Math.min(onDemandMsgCount || MAX_MESSAGES, MAX_MESSAGES))
  const names = number === undefined ? {} : { pnJid: pnJid(number), lidJid: id }
  const infos = messages.map(one => ({ message: infoOf(network, account, id, one) }))
  const conversation = { id, ...names, messages: infos }
  const { historySyncNotification, ...rest } = chunk({ syncType: ON_DEMAND, conversations: [conversation] }, 1)
  return { ...rest, historySyncNotification: { ...historySyncNotification, peerDataRequestSessionId: session } }
}
