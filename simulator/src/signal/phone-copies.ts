/** On request, the phone sends its client copies of messages that the client could not read, and earlier messages. */
import { proto } from 'baileys/WAProto/index.js'
import type { Account, Effect } from '../account.ts'
import { lidJid } from '../addresses.ts'
import { enc, encryptForClient } from '../contacts/contact-messages.ts'
import { createMessageId } from '../contacts/content.ts'
import type { Network } from '../network.ts'
import { release } from '../server/delivery.ts'
import { earlierMessages } from '../server/earlier-messages.ts'
import { infosOf } from '../server/history.ts'
import { bytes, child, type Node, node, seconds } from '../wire/nodes.ts'

const { PeerDataOperationRequestType, ProtocolMessage } = proto.Message
const { PLACEHOLDER_MESSAGE_RESEND } = PeerDataOperationRequestType
const { PEER_DATA_OPERATION_REQUEST_RESPONSE_MESSAGE } = ProtocolMessage.Type

/**
 * Answers a client's request. Call it inside `account.apply` or `applyDurably`.
 * @param peer the client's device as libsignal names it
 */
export async function answerPeer(network: Network, account: Account, peer: string, request: Node): Promise<Effect[]> {
  const ciphertext = bytes(request, 'enc')
  if (!ciphertext) return []
  const type = child(request, 'enc')?.attrs['type'] ?? ''
  const content = await account.devices.get(account.phone).decrypt(peer, type, ciphertext)
  const outer = proto.Message.decode(content)
  const { protocolMessage } = outer.deviceSentMessage?.message ?? outer
  const { historySyncOnDemandRequest, placeholderMessageResendRequest } =
    protocolMessage?.peerDataOperationRequestMessage ?? {}
  const id = request.attrs['id'] ?? ''
  const protocolAnswer = historySyncOnDemandRequest
    ? earlierMessages(network, account, historySyncOnDemandRequest, id)
    : sendsCopies(network) && copiesOf(network, account, placeholderMessageResendRequest ?? [], id)
  if (!protocolAnswer) return []
  const answer = proto.Message.encode({ protocolMessage: protocolAnswer }).finish()
  const effects: Effect[] = []
  const sent = await encryptForClient(network, account, account.phone, Buffer.from(answer), effects)
  const now = Date.now()
  const attrs = { from: lidJid(account.phone), id: createMessageId(), t: seconds(now), type: 'text', category: 'peer' }
  effects.push(release(network, account, account.queue.add(node('message', attrs, [enc(sent)]), now)))
  return effects
}

/** By default only the phones of the stand-alone program send copies. */
function sendsCopies({ scenario, syncsAfterLinking }: Network): boolean {
  return scenario.phoneCopies || syncsAfterLinking
}

function copiesOf(
  network: Network,
  account: Account,
  asked: readonly proto.Message.PeerDataOperationRequestMessage.IPlaceholderMessageResendRequest[],
  stanzaId: string,
): proto.Message.IProtocolMessage | null {
  const ids = new Set(asked.map(({ messageKey }) => messageKey?.id ?? ''))
  const peerDataOperationResult = infosOf(network, account, ids).map(({ key, ...info }) => {
    // Phones also name the author of a group message here instead of in the key.
    const { participant, ...named } = key ?? {}
    const webMessageInfoBytes = proto.WebMessageInfo.encode({
      ...info,
      key: named,
      participant: participant ?? null,
    }).finish()
    return { placeholderMessageResendResponse: { webMessageInfoBytes } }
  })
  if (peerDataOperationResult.length === 0) return null
  const peerDataOperationRequestResponseMessage = {
    peerDataOperationRequestType: PLACEHOLDER_MESSAGE_RESEND,
    stanzaId,
    peerDataOperationResult,
  }
  return { type: PEER_DATA_OPERATION_REQUEST_RESPONSE_MESSAGE, peerDataOperationRequestResponseMessage }
}
