/** The phone sends its linked client a copy of a message that the client could not read. */
import { proto } from 'baileys/WAProto/index.js'
import type { Account, Effect } from '../account.ts'
import { lidJid } from '../addresses.ts'
import { enc, encryptForClient } from '../contacts/contact-messages.ts'
import { createMessageId } from '../contacts/content.ts'
import type { Network } from '../network.ts'
import { release } from '../server/delivery.ts'
import { bytes, child, type Node, node, seconds } from '../wire/nodes.ts'

const { PeerDataOperationRequestType, ProtocolMessage } = proto.Message
const { PLACEHOLDER_MESSAGE_RESEND } = PeerDataOperationRequestType
const { PEER_DATA_OPERATION_REQUEST_RESPONSE_MESSAGE } = ProtocolMessage.Type

/**
 * Answers a client's request. Call it in an event of the account.
 * @param peer the client's device as libsignal names it
 */
export async function sendCopies(network: Network, account: Account, peer: string, request: Node): Promise<Effect[]> {
  const ciphertext = bytes(request, 'enc')
  if (!network.scenario.phoneCopies || !ciphertext) return []
  const type = child(request, 'enc')?.attrs['type'] ?? ''
  const content = await account.devices.get(account.phone).decrypt(peer, type, ciphertext)
  const outer = proto.Message.decode(content)
  const { protocolMessage } = outer.deviceSentMessage?.message ?? outer
  const asked = protocolMessage?.peerDataOperationRequestMessage?.placeholderMessageResendRequest ?? []
  const ids = asked.map(({ messageKey }) => messageKey?.id)
  const peerDataOperationResult = account.inboxes
    .list(account.phone)
    .filter(({ id }) => ids.includes(id))
    .map(({ id, from, group, text, receivedAt }) => {
      const sender = lidJid(from)
      const key = group ? { remoteJid: group, participant: sender } : { remoteJid: sender }
      const content = account.inboxes.contentOf(id)
      const message = content ? proto.Message.decode(content) : { conversation: text }
      const copy = { key: { ...key, fromMe: false, id }, message }
      const info = { ...copy, messageTimestamp: Math.floor(receivedAt / 1000) }
      return { placeholderMessageResendResponse: { webMessageInfoBytes: proto.WebMessageInfo.encode(info).finish() } }
    })
  if (peerDataOperationResult.length === 0) return []
  const peerDataOperationRequestResponseMessage = {
    peerDataOperationRequestType: PLACEHOLDER_MESSAGE_RESEND,
    stanzaId: request.attrs['id'] ?? '',
    peerDataOperationResult,
  }
  const protocolAnswer = {
    type: PEER_DATA_OPERATION_REQUEST_RESPONSE_MESSAGE,
    peerDataOperationRequestResponseMessage,
  }
  const answer = proto.Message.encode({ protocolMessage: protocolAnswer }).finish()
  const effects: Effect[] = []
  const sent = await encryptForClient(network, account, account.phone, Buffer.from(answer), effects)
  const now = Date.now()
  const attrs = { from: lidJid(account.phone), id: createMessageId(), t: seconds(now), type: 'text', category: 'peer' }
  effects.push(release(network, account, account.queue.add(node('message', attrs, [enc(sent)]), now)))
  return effects
}
