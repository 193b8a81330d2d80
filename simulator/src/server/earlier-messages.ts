/** On request, the phone sends its client earlier messages of a chat, in both directions. */
import { proto } from 'baileys/WAProto/index.js'
import type { Account } from '../account.ts'
import { isGroup, lidJid, parseAddress, pnJid } from '../addresses.ts'
import { otherMembers } from '../contacts/groups.ts'
import type { Network } from '../network.ts'
import type { ReceivedMessage } from '../types.ts'
import { chunk, infoOf } from './initial-sync.ts'

type Request = proto.Message.PeerDataOperationRequestMessage.IHistorySyncOnDemandRequest

const { ON_DEMAND } = proto.HistorySync.HistorySyncType
/** WhatsApp's phones send at most this many at once. */
const MAX_MESSAGES = 50
/** Baileys passes on what its caller gives as the time: seconds or milliseconds. */
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
  const all = messagesOf(network, account, id, number)
  const at = Number(oldestMsgTimestampMs ?? 0)
  const before = at < MILLISECONDS_FROM ? at * 1000 : at
  const oldest = all.findIndex(message => message.id === oldestMsgId)
  const earlier = oldest === -1 ? all.filter(({ receivedAt }) => receivedAt < before) : all.slice(oldest + 1)
  const messages = earlier.slice(0, Math.min(onDemandMsgCount || MAX_MESSAGES, MAX_MESSAGES))
  const names = number === undefined ? {} : { pnJid: pnJid(number), lidJid: id }
  const infos = messages.map(one => ({ message: infoOf(account, id, one, contentOf(network, account, one)) }))
  const conversation = { id, ...names, messages: infos }
  const { historySyncNotification, ...rest } = chunk({ syncType: ON_DEMAND, conversations: [conversation] }, 1)
  return { ...rest, historySyncNotification: { ...historySyncNotification, peerDataRequestSessionId: session } }
}

/** The newest first. What the account wrote is in the inboxes of those who received it. */
function messagesOf(network: Network, account: Account, chat: string, number: string | undefined): ReceivedMessage[] {
  const others = number !== undefined ? [number] : isGroup(chat) ? otherMembers(account, chat) : []
  const isHere = ({ group, from }: ReceivedMessage) =>
    number === undefined ? group === chat : !group && from === number
  const isOwn = ({ group, from }: ReceivedMessage) =>
    from === account.phone && (group ?? null) === (number ? null : chat)
  const found = new Map<string, ReceivedMessage>()
  for (const message of account.inboxes.list(account.phone).filter(isHere)) found.set(message.id, message)
  for (const other of others)
    for (const message of inboxOf(network, account, other).list(other).filter(isOwn)) found.set(message.id, message)
  return [...found.values()]
    .filter(({ details = {} }) => !('reactionMessage' in details || 'protocolMessage' in details))
    .toSorted((one, other) => other.receivedAt - one.receivedAt)
}

function contentOf(network: Network, account: Account, { id }: ReceivedMessage): Uint8Array | null {
  const own = account.inboxes.contentOf(id)
  return own ?? network.accounts().flatMap(other => other.inboxes.contentOf(id) ?? [])[0] ?? null
}

function inboxOf(network: Network, account: Account, number: string) {
  return (network.findAccount(number) ?? account).inboxes
}
