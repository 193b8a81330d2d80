/** The queries of a linked client, and their answers. */
import type { Account, Effect } from '../account.ts'
import { isGroup, isNumber, lidJid, parseAddress, pnJid } from '../addresses.ts'
import type { Answer, Asker } from '../contacts/asker.ts'
import { behaviourOf } from '../contacts/behaviour.ts'
import { bundleNodes, takeBundle } from '../contacts/contact-messages.ts'
import { changeMembers, createGroup, leaveGroup, renameGroup } from '../contacts/group-changes.ts'
import { groupNode, groupOf, isMember } from '../contacts/groups.ts'
import type { Network } from '../network.ts'
import { linkedDevices } from '../signal/device-lists.ts'
import type { KeyBundle, PreKey } from '../signal/signal-device.ts'
import { bytes, child, children, type Node, node, SERVER, seconds } from '../wire/nodes.ts'
import { catchUp } from './delivery.ts'
import { preKeyIn } from './receipts.ts'
import { answerMex } from './restriction.ts'

type Handler = (asker: Asker, iq: Node) => Promise<Answer> | Answer

const handlers: Readonly<Record<string, Handler>> = {
  'get encrypt count': ({ network, account }) => [
    node('count', { value: Math.max(account.preKeys.size, network.claimedPreKeys).toString() }),
  ],
  'get encrypt digest': () => [node('digest')],
  'get encrypt key': answerKeys,
  'set encrypt registration': uploadKeys,
  'set encrypt rotate': rotateKey,
  'set passive active': () => [],
  'set w:m media_conn': ({ network, account }) => [network.media.connection(account.phone)],
  'get abt props': () => [node('props', { hash: 'none' })],
  'get blocklist': () => [node('list', {}, [])],
  'get privacy privacy': () => [node('privacy', {}, privacySettings())],
  'get usync usync': answerUsync,
  'get w:mex query': ({ network, account }, iq) => answerMex(network, account, iq),
  'get w:g2 query': answerGroup,
  'get w:g2 participating': answerGroups,
  'set w:g2 create': createGroup,
  'set w:g2 add': changeMembers('add'),
  'set w:g2 remove': changeMembers('remove'),
  'set w:g2 promote': changeMembers('promote'),
  'set w:g2 demote': changeMembers('demote'),
  'set w:g2 leave': leaveGroup,
  'set w:g2 subject': renameGroup,
  'set w:sync:app:state sync': answerAppState,
  'get w:sync:app:state sync': answerAppState,
}

/** Resolves once the answer has been sent, or has been dropped. */
export async function handleIq(asker: Asker, iq: Node): Promise<void> {
  const { id, type, xmlns, to } = iq.attrs
  if (type !== 'get' && type !== 'set') return
  const [question] = children(iq)
  const handler = handlers[`${type} ${xmlns} ${question?.tag}`] ?? handlers[`${type} ${xmlns}`]
  const answer = handler ? await handler(asker, iq) : []
  const from = to === undefined || to.startsWith('@') ? SERVER : to
  if (Array.isArray(answer))
    asker.client.send(node('iq', { type: 'result', from, id }, answer.length > 0 ? answer : undefined))
  else
    asker.client.send(
      node('iq', { type: 'error', from, id }, [node('error', { code: answer.error, text: answer.text })]),
    )
  if (type === 'set' && xmlns === 'passive' && question?.tag === 'active') await sendKept(asker)
}

async function sendKept({ network, account, markCaughtUp }: Asker): Promise<void> {
  await account.applyDurably(() => [() => catchUp(network, account, markCaughtUp)])
}

async function uploadKeys({ account }: Asker, iq: Node): Promise<Answer> {
  const keys: PreKey[] = []
  for (const one of children(child(iq, 'list'), 'key')) {
    const key = preKeyIn(one)
    if (!key) return { error: '406', text: 'not-acceptable' }
    keys.push(key)
  }
  const signed = preKeyIn(child(iq, 'skey'))
  const signature = bytes(child(iq, 'skey'), 'signature')
  await account.applyDurably(() => {
    account.addPreKeys(keys)
    if (signed && signature) account.replaceSignedPreKey({ ...signed, signature })
  })
  return []
}

async function rotateKey({ account }: Asker, iq: Node): Promise<Answer> {
  const skey = child(child(iq, 'rotate'), 'skey')
  const signed = preKeyIn(skey)
  const signature = bytes(skey, 'signature')
  if (!signed || !signature) return { error: '406', text: 'not-acceptable' }
  await account.applyDurably(() => {
    account.replaceSignedPreKey({ ...signed, signature })
  })
  return []
}

async function answerKeys({ network, account }: Asker, iq: Node): Promise<Answer> {
  const users: Node[] = []
  for (const { attrs } of children(child(iq, 'key'), 'user')) {
    const bundle = await findBundle(network, account, attrs['jid'])
    if (!bundle) {
      users.push(node('user', { jid: attrs['jid'] }, [node('error', { code: '404', text: 'item-not-found' })]))
      continue
    }
    const { registration, keys } = bundleNodes(bundle)
    users.push(node('user', { jid: attrs['jid'] }, [registration, ...keys]))
  }
  return [node('list', {}, users)]
}

async function findBundle(network: Network, account: Account, jid: string | undefined): Promise<KeyBundle | null> {
  const address = parseAddress(jid)
  if (!address || !behaviourOf(address.number).onWhatsApp) return null
  const owner = network.findAccount(address.number)
  if (address.device === 0) return (owner ?? account).devices.get(address.number).bundle()
  if (!owner && address.device <= account.devices.companionsOf(address.number)) {
    return account.devices.get(address.number, address.device).bundle()
  }
  if (owner?.companion?.device !== address.device) return null
  let bundle: KeyBundle | null = null
  await owner.applyDurably(() => {
    const effects: Effect[] = []
    bundle = takeBundle(network, owner, effects)
    return effects
  })
  return bundle
}

function answerUsync(asker: Asker, iq: Node): Answer {
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

function answerGroup({ account }: Asker, { attrs: { to } }: Node): Answer {
  if (!isGroup(to)) return { error: '404', text: 'item-not-found' }
  // whatsmeow: 403 means "not a participant of the group", 404 "no such group"
  if (!isMember(account, to)) return { error: '403', text: 'forbidden' }
  return [groupNode(to, groupOf(account, to))]
}

function answerGroups({ account }: Asker): Answer {
  const known = [...account.groupMembers.keys(), ...account.createdGroups.keys()].filter(group =>
    isMember(account, group),
  )
  return [
    node(
      'groups',
      {},
      known.map(group => groupNode(group, groupOf(account, group))),
    ),
  ]
}

function answerAppState(_asker: Asker, iq: Node): Answer {
  const collections = children(child(iq, 'sync'), 'collection').map(({ attrs }) =>
    node('collection', { name: attrs['name'], version: attrs['version'] ?? '0', has_more_patches: 'false' }),
  )
  return [node('sync', {}, collections)]
}

function privacySettings(): Node[] {
  const names = ['readreceipts', 'last', 'online', 'profile', 'status', 'groupadd', 'calladd']
  return names.map(name => node('category', { name, value: 'all' }))
}
