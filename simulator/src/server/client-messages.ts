/**
 * Handles a message from a client.
 *
 * The client encrypts one copy for each device that it knows of. The copy for the recipient's phone is decrypted and
 * put into its inbox. A copy for another account's client is queued for that client unchanged. Copies for the sender's
 * own phone are dropped. The recipient's reactions (receipts, an answer, a request to send the message again) are
 * queued in the same commit that records the message. The message is acknowledged once that commit is durable.
 */
import type { Account, Client, Effect } from '../account.ts'
import { type Address, isGroup, lidJid, parseAddress, pnJid, STATUS } from '../addresses.ts'
import { behaviourOf } from '../contacts/behaviour.ts'
import { type Content, encoded, readContent } from '../contacts/content.ts'
import { isMember, mayWrite, otherMembers } from '../contacts/groups.ts'
import { factsOf } from '../contacts/message-facts.ts'
import { askAgain, type Chat, type Reading, type ReadMessage, react } from '../contacts/reactions.ts'
import { inspect } from '../media/contact-files.ts'
import type { Network } from '../network.ts'
import { linkedDevices } from '../signal/device-lists.ts'
import { answerPeer } from '../signal/phone-copies.ts'
import { bytes, child, children, type Node, node, seconds } from '../wire/nodes.ts'
import { release } from './delivery.ts'
import { copyFor, type Outgoing, readOutgoing } from './outgoing.ts'
import { isRestrictedFor, RESTRICTED } from './restriction.ts'

/** WhatsApp's error for a malformed stanza. */
const MALFORMED = '479'
/**
 * The error for a message to a group that the sender is not in, or may not write in. WhatsApp's own error is not known. 403 is
 * its answer to a metadata query for such a group.
 */
const NOT_A_MEMBER = '403'
/** The error for a message to the number of an account that is not in this network. */
const NO_ACCOUNT = '404'
/** This many simulated members of a group decrypt their copies. The others are assumed to have decrypted theirs. */
const DECRYPTING_MEMBERS = 2
const NO_BYTES = Buffer.alloc(0)
/** Without an acknowledgement the client repeats the message later. */
const UNANSWERED = { durable: Promise.resolve() }
/** The interval between the receipts of the other members. */
const MEMBER_RECEIPT_GAP_MS = 50

/** Resolves once the message has been processed. `durable` settles when it is recorded and acknowledged. */
export async function handleMessage(
  network: Network,
  account: Account,
  client: Client,
  stanza: Node,
): Promise<{ durable: Promise<void> }> {
  const message = readOutgoing(account, client, stanza)
  const { to, category } = stanza.attrs
  const recipient = parseAddress(to)
  if (!message || !(recipient || isGroup(to) || to === STATUS)) return answer(client, stanza, MALFORMED)
  if (category === 'peer') {
    return account.apply(async () => {
      const answers = await answerPeer(network, account, message.peer, stanza)
      return [() => client.send(ack(stanza)), ...answers]
    })
  }
  if (!recipient) return sendToGroup(network, account, client, message, to!)
  const absence = network.absenceOf(recipient.number)
  if (absence === 'brief') return UNANSWERED
  const refusal = absence ? NO_ACCOUNT : behaviourOf(recipient.number).refusal
  if (refusal) return answer(client, stanza, refusal)
  if (isRestrictedFor(network, account, recipient.number)) return answer(client, stanza, RESTRICTED)
  return sendToUser(network, account, client, message, recipient)
}

async function sendToUser(network: Network, account: Account, client: Client, message: Outgoing, to: Address) {
  const chat = { jid: to.lid ? lidJid(to.number) : pnJid(to.number), group: false }
  const other = to.number === account.phone ? null : network.findAccount(to.number)
  const isBlocked = other?.settings.blocks(account.phone)
  const elsewhere = isBlocked
    ? ({ kind: 'nothing' } as const)
    : other && (await receiveElsewhere(network, account, client, other, message, null))
  return account.apply(async () => {
    const reading = elsewhere ?? (await receive(network, account, to.number, account.phone, message, null))
    const reaction = await react(network, account, message, to.number, reading, chat, 0)
    if (!other) reaction.push(...(await receiveOnCompanions(network, account, to.number, message, chat)))
    const complete = isComplete(network, account, to.number, message)
    const phash = complete ? undefined : participantHash(network, account, to.number)
    return [() => client.send(ack(message.stanza, undefined, phash)), ...reaction]
  })
}

/** The contact's devices besides its phone read the message too, or ask for it again. */
async function receiveOnCompanions(
  network: Network,
  account: Account,
  number: string,
  message: Outgoing,
  chat: Chat,
): Promise<Effect[]> {
  const effects: Effect[] = []
  for (const device of linkedDevices(network, account, number)) {
    const copy = copyFor(message, number, device)
    if (!copy) continue
    try {
      const type = copy.enc.attrs['type'] ?? ''
      const content = await account.devices.get(number, device).decrypt(message.peer, type, bytes(copy.enc) ?? NO_BYTES)
      if (readContent(content).isMessage) account.inboxes.markRead(number, message.id, device)
    } catch {
      effects.push(...askAgain(network, account, message, { number, device }, chat))
    }
  }
  return effects
}

/**
 * An acknowledgement with this hash means that some of the recipient's devices got no copy. How WhatsApp computes it is not
 * known.
 */
function participantHash(network: Network, account: Account, number: string): string {
  return `2:${linkedDevices(network, account, number).join('.')}`
}

/** True if every device of the recipient has a copy. A repeated message needs only the copies that were asked for. */
function isComplete(network: Network, account: Account, number: string, message: Outgoing): boolean {
  if (child(message.stanza, 'enc')) return true
  return linkedDevices(network, account, number).every(device => copyFor(message, number, device))
}

async function sendToGroup(network: Network, account: Account, client: Client, message: Outgoing, group: string) {
  const isStatus = group === STATUS
  if (!isStatus && !(isMember(account, group) && mayWrite(account, group, account.phone)))
    return answer(client, message.stanza, NOT_A_MEMBER)
  const people = isStatus ? readersOf(account, message) : otherMembers(account, group)
  if (people.some(number => network.absenceOf(number) === 'brief')) return UNANSWERED
  const members = people.filter(number => network.absenceOf(number) === null)
  const readings = new Map<string, Reading>()
  for (const member of members) {
    const other = network.findAccount(member)
    if (isStatus && other?.settings.blocks(account.phone)) continue
    if (other) readings.set(member, await receiveElsewhere(network, account, client, other, message, group))
  }
  return account.apply(async () => {
    await receiveBySimulated(network, account, members, message, group, readings)
    const effects: Effect[] = [() => client.send(ack(message.stanza))]
    let delay = 0
    for (const [member, reading] of readings) {
      effects.push(...(await react(network, account, message, member, reading, { jid: group, group: true }, delay)))
      if (readings.size > DECRYPTING_MEMBERS) delay += MEMBER_RECEIPT_GAP_MS
    }
    return effects
  })
}

/** A status goes to the people for whom the client has encrypted a copy. */
function readersOf(account: Account, { copies }: Outgoing): string[] {
  const readers = new Set(copies.map(({ address }) => address.number))
  readers.delete(account.phone)
  return [...readers]
}

async function receiveBySimulated(
  network: Network,
  account: Account,
  members: string[],
  message: Outgoing,
  group: string,
  readings: Map<string, Reading>,
): Promise<void> {
  const simulated = members.filter(member => !readings.has(member))
  for (const member of simulated.slice(0, DECRYPTING_MEMBERS)) {
    readings.set(member, await receive(network, account, member, account.phone, message, group))
  }
  const read = [...readings.values()].find(reading => reading.kind === 'read')
  if (!read || !message.groupCiphertext) return
  for (const member of simulated.slice(DECRYPTING_MEMBERS)) {
    const first = record(account, member, account.phone, message, read.message, group)
    readings.set(member, { kind: 'read', message: read.message, first })
  }
}

/**
 * Delivers to another account: its phone reads the message and the copy for its client is queued. Resolves when that is
 * durable.
 */
async function receiveElsewhere(
  network: Network,
  sender: Account,
  client: Client,
  other: Account,
  message: Outgoing,
  group: string | null,
): Promise<Reading> {
  let reading: Reading = { kind: 'nothing' }
  await other.applyDurably(async () => {
    const received = await receive(network, other, other.phone, sender.phone, message, group)
    // The read receipt of an earlier copy may not have been recorded before a kill. A second one is harmless.
    reading = received.kind === 'read' ? { ...received, first: true } : received
    const forwarded = other.companion && forward(sender, client, message, other.phone, other.companion.device, group)
    return forwarded ? [release(network, other, other.queue.add(forwarded, message.receivedAt))] : []
  })
  return reading
}

/** The stanza for the client of another account. Null if the message has no copy for it. */
function forward(
  sender: Account,
  client: Client,
  message: Outgoing,
  number: string,
  device: number,
  group: string | null,
): Node | null {
  const own = copyFor(message, number, device)
  const shared = children(message.stanza, 'enc').filter(part => part.attrs['type'] === 'skmsg')
  const parts = [...(own ? [own.enc] : []), ...(group ? shared : []), ...children(message.stanza, 'device-identity')]
  const meta = children(message.stanza, 'meta')
  if (!own && !(group && shared.length > 0)) return null
  const from = group
    ? { from: group, participant: lidJid(sender.phone, client.device), participant_pn: pnJid(sender.phone) }
    : { from: lidJid(sender.phone, client.device), sender_pn: pnJid(sender.phone) }
  const { type, edit } = message.stanza.attrs
  const t = seconds(message.receivedAt)
  return node('message', { ...from, id: message.id, t, type, edit, notify: sender.name, addressing_mode: 'lid' }, [
    ...parts,
    ...meta,
  ])
}

/** The phone of `number`, hosted in `scope`, decrypts its copy and puts the message into its inbox. */
async function receive(
  network: Network,
  scope: Account,
  number: string,
  from: string,
  message: Outgoing,
  group: string | null,
): Promise<Reading> {
  let content: Content | null
  try {
    content = await decrypt(scope, number, message, group)
  } catch {
    // A repeated ciphertext cannot be decrypted again, and the phone already has the message.
    if (scope.inboxes.receiveAgain(number, message.id)) return { kind: 'read', message: { text: '' }, first: false }
    return { kind: 'unreadable' }
  }
  if (!content?.isMessage) return { kind: 'nothing' }
  const read = await readMessage(network, scope, content, from)
  return { kind: 'read', message: read, first: record(scope, number, from, message, read, group) }
}

/** Downloads the file, if the message has one. */
async function readMessage(network: Network, scope: Account, content: Content, from: string): Promise<ReadMessage> {
  const { media, message } = content
  const read = { ...factsOf(scope.inboxes, content, from), content: encoded(message) }
  return media ? { ...read, media: await inspect(network.media, media), original: media } : read
}

async function decrypt(scope: Account, number: string, message: Outgoing, group: string | null) {
  const device = scope.devices.get(number)
  const copy = copyFor(message, number, 0)
  let content: Content | null = null
  if (copy) {
    const type = copy.enc.attrs['type'] ?? ''
    content = readContent(await device.decrypt(message.peer, type, bytes(copy.enc) ?? NO_BYTES))
    if (content.senderKey) {
      await device.acceptSenderKey(content.senderKey.group, message.peer, content.senderKey.distribution)
    }
  }
  if (!group || !message.groupCiphertext) return content
  return readContent(await device.decryptFromGroup(group, message.peer, message.groupCiphertext))
}

function record(
  scope: Account,
  number: string,
  from: string,
  message: Outgoing,
  { content, original: _, ...read }: ReadMessage,
  group: string | null,
): boolean {
  const { id, receivedAt } = message
  const askedFor = scope.retriesOf(number, id)
  const received = { id, from, ...read, ...(group && { group }), receivedAt, ...(askedFor && { askedFor }) }
  return scope.inboxes.receive(number, received, content)
}

function answer(client: Client, stanza: Node, error?: string): { durable: Promise<void> } {
  client.send(ack(stanza, error))
  return { durable: Promise.resolve() }
}

function ack({ attrs: { id, to, participant } }: Node, error?: string, phash?: string): Node {
  return node('ack', { class: 'message', id, from: to, participant, t: seconds(Date.now()), error, phash })
}
