/** Contacts call accounts. WhatsApp's server only passes on what the devices of a call tell each other. */
import type { Account, Client } from '../account.ts'
import { isGroup, isNumber, lidJid, pnJid } from '../addresses.ts'
import type { Network } from '../network.ts'
import { release } from '../server/delivery.ts'
import { type Call, type ContactCall, SimulatorError } from '../types.ts'
import { children, type Node, node, seconds } from '../wire/nodes.ts'
import { createMessageId } from './content.ts'

/** @throws SimulatorError */
export async function callAs(
  network: Network,
  { from, to, video = false, group }: ContactCall,
): Promise<{ id: string }> {
  if (!isNumber(from) || typeof video !== 'boolean' || !(group === undefined || isGroup(group)))
    throw new SimulatorError('invalid_argument', 'needs the numbers `from` and `to`')
  const account = network.getAccount(to)
  const call: Call = { id: createMessageId(), from, to, video, ...(group && { group }), state: 'ringing' }
  network.calls.set(call.id, call)
  const media = [node('audio', { enc: 'opus', rate: '16000' }), ...(video ? [node('video', { enc: 'vp8' })] : [])]
  const notice = node('offer_notice', { 'group-jid': group, type: 'group', media: video ? 'video' : 'audio' })
  if (!account.settings.blocks(from)) await tell(network, account, call, group ? notice : node('offer', {}, media))
  return { id: call.id }
}

/** The contact hangs up. @throws SimulatorError */
export async function endCall(network: Network, id: string): Promise<void> {
  const call = network.calls.get(id)
  if (!call) throw new SimulatorError('invalid_argument', `there is no call ${id}`)
  if (call.state !== 'ringing') return
  call.state = 'ended'
  await tell(network, network.getAccount(call.to), call, node('terminate', { reason: 'timeout' }))
}

async function tell(network: Network, account: Account, { id, from }: Call, what: Node): Promise<void> {
  await account.applyDurably(() => {
    if (!account.companion) return []
    const now = Date.now()
    const party = { 'call-id': id, 'call-creator': lidJid(from), caller_pn: pnJid(from) }
    const attrs = { from: lidJid(from), id: createMessageId(), t: seconds(now), platform: 'android', version: '2.26.1' }
    const stanza = node('call', attrs, [node(what.tag, { ...party, ...what.attrs }, what.content)])
    return [release(network, account, account.queue.add(stanza, now))]
  })
}

/** A client rejects a call. The network supports no other action of a client on a call. */
export function handleCall(network: Network, account: Account, client: Client, stanza: Node): void {
  const { id, to } = stanza.attrs
  const [what] = children(stanza)
  const call = network.calls.get(what?.attrs['call-id'] ?? '')
  const answer = { class: 'call', id, from: to, type: what?.tag }
  if (what?.tag === 'reject' && call?.to === account.phone) {
    if (call.state === 'ringing') call.state = 'rejected'
    client.send(node('ack', answer))
    return
  }
  const [code, text] = what?.tag === 'reject' ? ['404', 'item-not-found'] : ['400', 'bad-request']
  if (code === '400') network.refusedQueries.report(`call ${what?.tag}`, stanza)
  client.send(node('ack', { ...answer, error: code }, [node('error', { code, text })]))
}
