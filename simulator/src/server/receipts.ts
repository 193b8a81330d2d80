/**
 * Handles a client's receipts and acknowledgements. Both confirm stanzas, which are then not delivered again. After a retry request, a stanza is encrypted
 * again, and a receipt for another account's message is forwarded to that account.
 */
import type { Account, Client, Effect } from '../account.ts'
import { isGroup, lidJid, parseAddress, STATUS } from '../addresses.ts'
import { encryptAnew, takeBundle } from '../contacts/contact-messages.ts'
import { uploadAgain } from '../media/media-retries.ts'
import type { Network } from '../network.ts'
import type { KeyBundle } from '../signal/signal-device.ts'
import { bytes, child, children, type Node, node, seconds, uint } from '../wire/nodes.ts'
import { receiptParty } from '../wire/stanza-queue.ts'
import { release } from './delivery.ts'

const MAX_RETRIES = 5
/** Receipts that the author of the message gets. The others are between a client and its own phone. */
const FORWARDED_TO_AUTHOR: readonly (string | undefined)[] = [undefined, 'read', 'played']

/** Resolves once the receipt has been processed. `durable` settles when it is recorded and acknowledged. */
export async function handleReceipt(network: Network, account: Account, client: Client, stanza: Node) {
  const { id, to, type, participant } = stanza.attrs
  const ids = [id, ...children(child(stanza, 'list'), 'item').map(item => item.attrs['id'])].filter(
    one => one !== undefined,
  )
  await passOn(network, account, client, stanza, ids)
  return account.apply(async () => {
    const effects: Effect[] = [() => client.send(node('ack', { class: 'receipt', id, from: to, type, participant }))]
    if (type === 'retry') effects.push(...(await sendAgain(network, account, stanza)))
    else if (type === 'server-error') effects.push(...(await uploadAgain(network, account, stanza)))
    else for (const one of ids) settleMessage(account, one, stanza)
    return effects
  })
}

/** A client's acknowledgement of a message, receipt or notification. */
export async function handleAck(account: Account, stanza: Node): Promise<{ durable: Promise<void> }> {
  const { class: tag = '', id = '', type, to, participant, error } = stanza.attrs
  const party = tag === 'receipt' ? receiptParty(type, to, participant) : ''
  return account.apply(() => {
    const entry = account.queue.find(tag, id, Date.now(), party)
    if (!entry) return
    const refused = error !== undefined
    // After asking for a message again, a client also refuses the first copy, which has already been replaced.
    if (refused && entry.unansweredRetries > 0) entry.unansweredRetries--
    else if (refused || !isOwnCopy(entry.stanza)) account.queue.settle(entry)
  })
}

function settleMessage(account: Account, id: string, receipt: Node): void {
  const entry = account.queue.find('message', id, Date.now())
  if (entry && isFor(entry.stanza, receipt.attrs)) account.queue.settle(entry)
}

/** True for a copy of a message that the owner wrote to a person or an assistant. Only a receipt settles it. */
function isOwnCopy({ tag, attrs }: Node): boolean {
  return tag === 'message' && attrs['recipient'] !== undefined
}

/** The receipt for an own copy has to name its sender and its recipient. Other receipts need only the ID. */
function isFor(message: Node, { type, to, recipient }: Node['attrs']): boolean {
  if (!isOwnCopy(message)) return true
  const { attrs } = message
  return type === 'sender' && isSameParty(to, attrs['from']) && isSameParty(recipient, attrs['recipient'])
}

function isSameParty(one: string | undefined, other: string | undefined): boolean {
  const number = parseAddress(one)?.number
  return number === undefined ? one === other : number === parseAddress(other)?.number
}

/** A contact encrypts a message again for a client that could not decrypt it. */
async function sendAgain(network: Network, account: Account, stanza: Node): Promise<Effect[]> {
  const id = stanza.attrs['id'] ?? ''
  const entry = account.queue.find('message', id, Date.now())
  const count = Number(child(stanza, 'retry')?.attrs['count'] ?? 1)
  if (!entry?.original || !(count <= MAX_RETRIES)) return []
  const effects: Effect[] = []
  const bundle = bundleIn(stanza) ?? takeBundle(network, account, effects)
  if (!bundle) return []
  account.inboxes.noteAskedFor(account.phone, id)
  account.queue.replace(entry, await encryptAnew(account, entry.stanza, entry.original, bundle, count))
  return [...effects, release(network, account, entry)]
}

/** The keys in a retry request, if it has any. */
function bundleIn(stanza: Node): KeyBundle | null {
  const keys = child(stanza, 'keys')
  const identity = bytes(keys, 'identity')
  const registrationId = uint(bytes(stanza, 'registration'))
  const signed = preKeyIn(child(keys, 'skey'))
  const signature = bytes(child(keys, 'skey'), 'signature')
  if (!identity || registrationId === undefined || !signed || !signature) return null
  return { identity, registrationId, signedPreKey: { ...signed, signature }, preKey: preKeyIn(child(keys, 'key')) }
}

export function preKeyIn(key: Node | undefined): { id: number; publicKey: Buffer } | undefined {
  const id = uint(bytes(key, 'id'))
  const publicKey = bytes(key, 'value')
  return id === undefined || publicKey?.length !== 32 ? undefined : { id, publicKey }
}

/** Forwards the receipt to the client of the account that wrote the message. */
async function passOn(network: Network, account: Account, client: Client, stanza: Node, ids: string[]): Promise<void> {
  const { to, type, participant } = stanza.attrs
  const isShared = isGroup(to) || to === STATUS
  const author = parseAddress(isShared ? participant : to)
  const other = author && author.number !== account.phone ? network.findAccount(author.number) : null
  if (!other?.companion || !(type === 'retry' || FORWARDED_TO_AUTHOR.includes(type))) return
  const from = lidJid(account.phone, type === 'retry' ? client.device : 0)
  const sender = isShared ? { from: to, participant: from } : { from }
  await other.applyDurably(() => {
    const now = Date.now()
    return ids.map(id => {
      const content = type === 'retry' && Array.isArray(stanza.content) ? stanza.content : undefined
      const receipt = node('receipt', { ...sender, id, type, t: seconds(now) }, content)
      return release(network, other, other.queue.add(receipt, now))
    })
  })
}
