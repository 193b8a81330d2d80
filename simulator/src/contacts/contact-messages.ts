import { proto } from 'baileys/WAProto/index.js'
import type { Account, Effect } from '../account.ts'
import { lidJid, pnJid, STATUS } from '../addresses.ts'
import { asStated, type UploadedFile } from '../media/contact-files.ts'
import { mediaMessage } from '../media/media-content.ts'
import type { MediaDescription } from '../media/media-types.ts'
import type { Network } from '../network.ts'
import { garbled } from '../scenario/alterations.ts'
import { release } from '../server/delivery.ts'
import type { Encrypted, KeyBundle } from '../signal/signal-device.ts'
import { bigEndian, type Node, node, seconds } from '../wire/nodes.ts'
import type { Original } from '../wire/stanza-queue.ts'
import { createMessageId, encoded, readContent, textMessage, withSenderKey } from './content.ts'
import { groupNotification, groupOf, otherMembers, participantNode } from './groups.ts'
import { factsOf, kindOf } from './message-facts.ts'

/** With fewer one-time keys left, WhatsApp asks a client for more. Baileys then uploads some. */
const FEW_PRE_KEYS = 5

export interface Writing {
  from: string
  text?: string | undefined
  /** Sent instead of a text. */
  media?: SentMedia | undefined
  /** Sent instead of a text or a file. */
  message?: proto.IMessage | undefined
  /** WhatsApp's ID of the message that it quotes. */
  quote?: string | undefined
  group?: string | undefined
  undecryptable?: boolean | undefined
  unavailable?: boolean | undefined
  /** Milliseconds since the epoch. The client does not get the message earlier. */
  at: number
}

/** A file that is on the media host already. */
export interface SentMedia {
  description: Partial<MediaDescription> & Pick<MediaDescription, 'type'>
  file: UploadedFile
}

/**
 * A contact writes to the account. The message is put on the account's phone, and encrypted and queued for its client
 * if one is linked. Call it inside `account.apply` or `applyDurably`.
 */
export async function writeToAccount(network: Network, account: Account, writing: Writing) {
  const { from, group, undecryptable, unavailable, at } = writing
  const id = createMessageId()
  const effects: Effect[] = []
  if ((!group || group === STATUS) && account.settings.blocks(from)) return { id, effects }
  const content = encoded(messageOf(account, writing))
  const read = readContent(content)
  const received = { id, from, ...factsOf(account.inboxes, read, from), ...(group && { group }), receivedAt: at }
  // The phone shows the file as the contact describes it.
  account.inboxes.receive(account.phone, { ...received, ...(read.media && { media: asStated(read.media) }) }, content)
  if (group && group !== STATUS) effects.push(...join(network, account, group, from))
  if (!account.companion) return { id, effects }
  const original: Original = { from, group, content }
  const encrypted = async () =>
    group
      ? encryptForGroup(network, account, original, effects)
      : [enc(await encryptForClient(network, account, from, content, effects))]
  const parts = unavailable ? [node('unavailable')] : await encrypted()
  const stanza = messageStanza(account, original, id, at, parts, kindOf(read))
  const entry = account.queue.add(undecryptable ? garbled(stanza) : stanza, at, original)
  effects.push(release(network, account, entry))
  return { id, effects }
}

export function messageOf(
  account: Account,
  { text = '', media, message, quote }: Pick<Writing, 'text' | 'media' | 'message' | 'quote'>,
): proto.IMessage {
  if (message) return message
  const context = quote === undefined ? undefined : quotation(account, quote)
  return media ? mediaMessage(media.description, media.file, context) : textMessage(text, context)
}

/** Refers to a message on the account's phone, or on that of one of its contacts. */
function quotation(account: Account, id: string): proto.IContextInfo {
  const message = account.inboxes.find(id)
  const content = account.inboxes.contentOf(id)
  const quotedMessage = content ? proto.Message.decode(content) : textMessage(message?.text ?? '')
  quotedMessage.messageContextInfo = null
  return { stanzaId: id, ...(message && { participant: lidJid(message.from) }), quotedMessage }
}

/**
 * Makes `number` a member of a group as the account sees it, and notifies its client. Call it inside `account.apply` or
 * `applyDurably`.
 */
export function join(network: Network, account: Account, group: string, number: string): Effect[] {
  if (number === account.phone || otherMembers(account, group).includes(number)) return []
  const created = account.createdGroups.get(group)
  if (created) account.setCreatedGroup(group, { ...created, members: [...created.members, { number }] })
  else account.addGroupMember(group, number)
  if (!account.companion) return []
  const now = Date.now()
  const added = node('add', {}, [participantNode({ number })])
  const { creator } = groupOf(account, group)
  const notification = groupNotification(group, creator, createMessageId(), seconds(now), added)
  return [release(network, account, account.queue.add(notification, now))]
}

/**
 * Encrypts a message again, in a new session, for a client that could not decrypt it. Call it inside `account.apply` or
 * `applyDurably`.
 */
export async function encryptAnew(
  account: Account,
  stanza: Node,
  { from, group, content }: Original,
  bundle: KeyBundle,
  count: number,
): Promise<Node> {
  const device = account.devices.get(from)
  const peer = clientPeer(account)
  await device.openSession(peer, bundle)
  const sent = group
    ? withSenderKey(group, (await device.encryptForGroup(group, content)).distribution, content)
    : content
  return node(stanza.tag, stanza.attrs, [enc(await device.encrypt(peer, sent), count)])
}

export function messageStanza(
  account: Account,
  { from, group }: Original,
  id: string,
  at: number,
  parts: Node[],
  { attrs, parts: more }: ReturnType<typeof kindOf> = { attrs: { type: 'text' }, parts: [] },
): Node {
  const { username } = account.settings.contact(from)
  const sender = group
    ? { from: group, participant: lidJid(from), participant_pn: pnJid(from), participant_username: username }
    : { from: lidJid(from), sender_pn: pnJid(from), username }
  const notify = account.contactNames.get(from)
  const t = seconds(at)
  return node('message', { ...sender, id, t, ...attrs, notify, addressing_mode: 'lid' }, [...parts, ...more])
}

export async function encryptForGroup(network: Network, account: Account, original: Original, effects: Effect[]) {
  const { from, content } = original
  const group = original.group!
  const { ciphertext, distribution } = await account.devices.get(from).encryptForGroup(group, content)
  const parts = [node('enc', { v: '2', type: 'skmsg' }, ciphertext)]
  if (account.senderKeysKnown.get(`${from}/${group}`) === account.companion?.device) return parts
  account.setSenderKeyKnown(from, group)
  return [enc(await encryptForClient(network, account, from, withSenderKey(group, distribution), effects)), ...parts]
}

export async function encryptForClient(
  network: Network,
  account: Account,
  from: string,
  content: Buffer,
  effects: Effect[],
): Promise<Encrypted> {
  const device = account.devices.get(from)
  const peer = clientPeer(account)
  if (!device.hasSession(peer)) await device.openSession(peer, takeBundle(network, account, effects)!)
  return device.encrypt(peer, content)
}

/** Takes the client's keys for one new session. Asks the client for more if few are left. */
export function takeBundle(network: Network, account: Account, effects: Effect[]): KeyBundle | null {
  const bundle = account.takeBundle()
  if (bundle?.preKey && account.preKeys.size === FEW_PRE_KEYS - 1) {
    const now = Date.now()
    const attrs = { from: 's.whatsapp.net', type: 'encrypt', id: createMessageId(), t: seconds(now) }
    const count = node('count', { value: account.preKeys.size.toString() })
    effects.push(release(network, account, account.queue.add(node('notification', attrs, [count]), now)))
  }
  return bundle
}

function clientPeer(account: Account): string {
  return `${account.phone}.${account.companion?.device ?? 0}`
}

export function enc({ type, ciphertext }: Encrypted, count?: number): Node {
  return node('enc', { v: '2', type, count: count?.toString() }, ciphertext)
}

/** A bundle in the form of pre-key queries and retry requests. */
export function bundleNodes({ registrationId, identity, signedPreKey, preKey }: KeyBundle): {
  registration: Node
  keys: Node[]
} {
  const keys = [
    node('type', {}, Buffer.from([5])),
    node('identity', {}, identity),
    node('skey', {}, [
      node('id', {}, bigEndian(signedPreKey.id, 3)),
      node('value', {}, signedPreKey.publicKey),
      node('signature', {}, signedPreKey.signature),
    ]),
  ]
  if (preKey) {
    keys.push(node('key', {}, [node('id', {}, bigEndian(preKey.id, 3)), node('value', {}, preKey.publicKey)]))
  }
  return { registration: node('registration', {}, bigEndian(registrationId, 4)), keys }
}
