/**
 * Who is online, and who types. None of this is queued: only connected clients that have subscribed to a person are
 * notified. Typing also reaches a client that has made itself available.
 */
import type { Account } from '../account.ts'
import { isGroup, isNumber, lidJid, parseAddress } from '../addresses.ts'
import { isMember, otherMembers } from '../contacts/groups.ts'
import type { Network } from '../network.ts'
import { type ContactPresence, type ContactTyping, type PhonePresence, SimulatorError } from '../types.ts'
import { children, type Node, node } from '../wire/nodes.ts'
import type { Presence } from './presences.ts'

const TYPING = ['composing', 'recording', 'paused'] as const

/** A client reports itself available or not, or subscribes to the presence of a person or group, or unsubscribes. */
export function handlePresence(network: Network, account: Account, { attrs: { to, type } }: Node): void {
  const { client } = account
  if (!client) return
  if (to === undefined) {
    const isAvailable = type !== 'unavailable'
    if (client.isAvailable === isAvailable) return
    client.isAvailable = isAvailable
    announcePresence(network, account)
    return
  }
  const subject = isGroup(to) ? to : parseAddress(to)?.number
  if (subject === undefined) return
  if (type === 'unsubscribe') client.subscriptions.delete(subject)
  if (type !== 'subscribe') return
  client.subscriptions.set(subject, to)
  tellPresence(network, account, subject)
}

/** Tells the clients that have subscribed to the account whether its client is available. */
export function announcePresence(network: Network, account: Account): void {
  network.presences.noteLastSeen(account.phone)
  for (const viewer of network.accounts()) if (viewer !== account) tellPresence(network, viewer, account.phone)
}

/** Notifies the viewer's client of the presence, if it has subscribed to this person or group. */
function tellPresence(network: Network, viewer: Account, subject: string): void {
  const from = viewer.client?.subscriptions.get(subject)
  if (from === undefined) return
  if (isGroup(subject)) {
    if (!isMember(viewer, subject)) return
    const online = otherMembers(viewer, subject).filter(one => presenceOf(network, viewer, one).available)
    viewer.client?.send(node('presence', { from: subject, count: online.length.toString() }))
    return
  }
  if (viewer.settings.blocks(subject)) return
  const { available, lastSeen } = presenceOf(network, viewer, subject)
  const last = lastSeen?.toString() ?? 'deny'
  viewer.client?.send(node('presence', available ? { from } : { from, type: 'unavailable', last }))
}

function presenceOf(network: Network, viewer: Account, number: string): Presence {
  const account = network.findAccount(number)
  if (!account) return network.presences.ofContact(viewer.phone, number)
  const { settings, client } = account
  if (settings.blocks(viewer.phone)) return { available: false }
  const isHidden = settings.privacy('last') === 'none'
  const available = client?.isAvailable === true && !(isHidden && settings.privacy('online') === 'match_last_seen')
  return { available, lastSeen: isHidden ? undefined : network.presences.lastSeen(number) }
}

/** A client types. The recipients' phones show it, and the clients of recipients with an account are notified. */
export function handleChatState(network: Network, account: Account, stanza: Node): void {
  const { to } = stanza.attrs
  const [shown] = children(stanza)
  const group = isGroup(to) ? to : undefined
  const address = group ? null : parseAddress(to)
  if (!shown || !(address || (group && isMember(account, group)))) return
  const state = shown.attrs['media'] === 'audio' ? 'recording' : (shown.tag as ContactTyping['state'])
  if (!TYPING.includes(state)) return
  for (const reader of group ? otherMembers(account, group) : [address!.number]) {
    network.presences.setTyping(reader, account.phone, group, state)
    const other = network.findAccount(reader)
    if (other) tellTyping(other, account.phone, group, state)
  }
}

/** @throws SimulatorError */
export function typeAs(network: Network, { from, to, group, state }: ContactTyping): void {
  if (!isNumber(from) || (group !== undefined && !isGroup(group)) || !TYPING.includes(state))
    throw new SimulatorError('invalid_argument', `needs \`from\`, \`to\` and a \`state\`: ${TYPING.join(', ')}`)
  const account = network.getAccount(to)
  network.presences.setTyping(to, from, group, state)
  tellTyping(account, from, group, state)
}

function tellTyping(
  { client, settings }: Account,
  from: string,
  group: string | undefined,
  state: ContactTyping['state'],
): void {
  const subscribed = client?.subscriptions.get(group ?? from)
  if (!group && settings.blocks(from)) return
  if (!client || !(client.isAvailable || subscribed)) return
  const sender = group ? { from: group, participant: lidJid(from) } : { from: subscribed ?? lidJid(from) }
  const shown = state === 'recording' ? node('composing', { media: 'audio' }) : node(state)
  client.send(node('chatstate', sender, [shown]))
}

/** @throws SimulatorError */
export function setPresence(network: Network, { from, to, available, lastSeen }: ContactPresence): void {
  if (!isNumber(from) || typeof available !== 'boolean' || !['undefined', 'number'].includes(typeof lastSeen))
    throw new SimulatorError('invalid_argument', 'needs `from`, `to` and `available`, true or false')
  const account = network.getAccount(to)
  if (network.findAccount(from))
    throw new SimulatorError('invalid_argument', '`from` is an account, whose client reports its presence')
  network.presences.setContact(account.phone, from, { available, lastSeen })
  tellPresence(network, account, from)
}

/** Who types on the phone of `number`, and whether the client of its account is available. */
export function phonePresence(network: Network, number: string): PhonePresence {
  const client = network.findAccount(number)?.client
  return { available: client?.isAvailable === true, typing: network.presences.typingOn(number) }
}
