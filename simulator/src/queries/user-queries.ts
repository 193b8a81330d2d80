/** Look-ups of users: whether they exist, and their devices and addresses. */
import type { Account } from '../account.ts'
import { isNumber, lidJid, parseAddress, pnJid } from '../addresses.ts'
import type { Answer, Asker } from '../contacts/asker.ts'
import { behaviourOf } from '../contacts/behaviour.ts'
import type { Network } from '../network.ts'
import { linkedDevices } from '../signal/device-lists.ts'
import { bytes, child, children, type Node, node, seconds } from '../wire/nodes.ts'

export function answerUsync(asker: Asker, iq: Node): Answer {
  const usync = child(iq, 'usync')
  const protocols = children(child(usync, 'query')).map(({ tag }) => tag)
  const users = children(child(usync, 'list'), 'user').flatMap(user => usyncUser(asker, user, protocols))
  const { sid, mode, context } = usync?.attrs ?? {}
  const attrs = { sid, mode, context, index: '0', last: 'true' }
  return [node('usync', attrs, [node('result'), node('list', {}, users)])]
}

/** A number that is not on WhatsApp is left out, unless the query is for a contact. */
function usyncUser({ network, account }: Asker, user: Node, protocols: string[]): Node[] {
  const asked = user.attrs['jid']
  const contact = bytes(user, 'contact')?.toString().replace(/\D/g, '')
  const address = asked === undefined ? null : parseAddress(asked)
  const number = address?.number ?? found(network, contact)
  const exists = isNumber(number) && behaviourOf(number).onWhatsApp
  if (!exists) return contact ? [node('user', {}, [node('contact', { type: 'out' })])] : []
  const answers: Node[] = []
  if (protocols.includes('contact')) answers.push(node('contact', { type: 'in' }))
  if (protocols.includes('devices')) answers.push(devicesNode(network, account, number))
  if (protocols.includes('lid') && !address?.lid) answers.push(node('lid', { val: lidJid(number) }))
  return [node('user', { jid: address?.lid ? lidJid(number) : pnJid(number) }, answers)]
}

/** The number that a look-up of `contact` returns. */
function found(network: Network, contact: string | undefined): string | null {
  if (contact === undefined) return null
  const { lookUps } = network.scenario
  return lookUps.has(contact) ? lookUps.get(contact)! : contact
}

function devicesNode(network: Network, account: Account, number: string): Node {
  const devices = [node('device', { id: '0' })]
  for (const device of linkedDevices(network, account, number).map(String)) {
    devices.push(node('device', { id: device, 'key-index': device }))
  }
  return node('devices', {}, [node('device-list', {}, devices), node('key-index-list', { ts: seconds(Date.now()) })])
}
