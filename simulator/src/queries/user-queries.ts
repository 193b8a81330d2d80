/** Look-ups of users: whether they exist, and their devices and addresses. */
import type { Account } from '../account.ts'
import { isNumber, lidJid, parseAddress, pnJid } from '../addresses.ts'
import type { Answer, Asker } from '../contacts/asker.ts'
import { behaviourOf } from '../contacts/behaviour.ts'
import type { Network } from '../network.ts'
import { hides, profileOf } from '../profiles/profile-queries.ts'
import { devicesNode } from '../signal/device-lists.ts'
import { bytes, child, children, type Node, node } from '../wire/nodes.ts'

const DEFAULT_ABOUT = 'Hey there! I am using WhatsApp.'

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
  const { username } = child(user, 'contact')?.attrs ?? {}
  const address = asked === undefined ? null : parseAddress(asked)
  const named = username === undefined ? null : account.settings.findUsername(username)
  const number = address?.number ?? named ?? found(network, contact)
  const exists = isNumber(number) && behaviourOf(number).onWhatsApp
  if (!exists) return contact || username ? [node('user', {}, [node('contact', { type: 'out' })])] : []
  const answers: Node[] = []
  if (protocols.includes('contact')) answers.push(node('contact', { type: 'in' }))
  if (protocols.includes('devices')) answers.push(devicesNode(network, account, number))
  if (protocols.includes('lid') && !address?.lid) answers.push(node('lid', { val: lidJid(number) }))
  answers.push(...shownNodes(network, account, number, protocols))
  // A person that was found by the username is named by LID.
  return [node('user', { jid: address?.lid || named ? lidJid(number) : pnJid(number) }, answers)]
}

/** The requested parts of the person's profile, as far as the person shows them. */
function shownNodes(network: Network, account: Account, number: string, protocols: string[]): Node[] {
  const { about, picture, username } = profileOf(network, account, number)
  const answers: Node[] = []
  if (protocols.includes('status')) {
    const isHidden = hides(network, account, number, 'status')
    const { text, at } = about ?? { text: DEFAULT_ABOUT, at: 0 }
    // An empty text is answered with 401, like a hidden one.
    if (isHidden || text === '') answers.push(node('status', { code: '401', type: 'fail' }))
    else answers.push(node('status', { t: at.toString() }, Buffer.from(text)))
  }
  if (protocols.includes('picture') && picture && !hides(network, account, number, 'profile'))
    answers.push(node('picture', { id: picture.id }))
  if (protocols.includes('username') && username) answers.push(node('username', {}, Buffer.from(username)))
  if (protocols.includes('disappearing_mode')) {
    const { duration, at } = network.findAccount(number)?.settings.timer ?? { duration: 0, at: 0 }
    answers.push(node('disappearing_mode', { duration: duration.toString(), t: at.toString() }))
  }
  return answers
}

/** The number that a look-up of `contact` returns. */
function found(network: Network, contact: string | undefined): string | null {
  if (contact === undefined) return null
  const { lookUps } = network.scenario
  return lookUps.has(contact) ? lookUps.get(contact)! : contact
}
