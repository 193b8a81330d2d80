import type { Account, Effect } from '../account.ts'
import { type Address, lidJid, pnJid } from '../addresses.ts'
import { forward } from '../media/contact-files.ts'
import type { MediaMessage } from '../media/media-content.ts'
import type { Network } from '../network.ts'
import { release } from '../server/delivery.ts'
import type { Outgoing } from '../server/outgoing.ts'
import type { MessageActions, ReceivedMessage } from '../types.ts'
import { node, seconds } from '../wire/nodes.ts'
import type { QueuedStanza } from '../wire/stanza-queue.ts'
import { behaviourOf } from './behaviour.ts'
import { bundleNodes, writeToAccount } from './contact-messages.ts'

/** How often a phone asks for a message that it cannot decrypt. */
const MAX_RETRIES = 5

/** The chat that a message was sent to, as its receipts name it. */
export interface Chat {
  jid: string
  group: boolean
}

/** The result of decrypting a message on a phone: `nothing` if the message had no copy for it. */
export type Reading =
  | { kind: 'read'; message: ReadMessage; first: boolean }
  | { kind: 'unreadable' }
  | { kind: 'nothing' }

/** A decrypted message. */
export interface ReadMessage
  extends MessageActions,
    Pick<ReceivedMessage, 'text' | 'quoted' | 'details' | 'media' | 'mentions'> {
  /** Where the file is, if it has one. */
  original?: MediaMessage
  /** The encoded message. */
  content?: Buffer
}

/** Queues the recipient's reactions to the message. Call it inside `apply` or `applyDurably` of the sender's account. */
export async function react(
  network: Network,
  account: Account,
  message: Outgoing,
  number: string,
  reading: Reading,
  chat: Chat,
  delayMs: number,
): Promise<Effect[]> {
  if (reading.kind === 'nothing') return []
  if (reading.kind === 'unreadable') return askAgain(network, account, message, { number, device: 0 }, chat)
  const behaviour = behaviourOf(number)
  const { deliveredAfterMs, readAfterMs, answeredAfterMs } = network.timings
  const at = message.receivedAt + delayMs
  const entries: QueuedStanza[] = []
  if (behaviour.delivers) entries.push(queueReceipt(account, message.id, number, chat, at + deliveredAfterMs))
  const readsItself = network.readsForClients || !network.findAccount(number)?.companion
  if (behaviour.reads && reading.first && readsItself) {
    entries.push(queueReceipt(account, message.id, number, chat, at + readAfterMs, 'read'))
  }
  const effects = entries.map(entry => release(network, account, entry))
  if (!behaviour.echoes || !reading.first || chat.group) return effects
  const echo = await echoOf(network, account, reading.message)
  if (!echo) return effects
  const answer = await writeToAccount(network, account, { from: number, ...echo, at: at + answeredAfterMs })
  return [...effects, ...answer.effects]
}

/** The same text, or the same file under another key. */
async function echoOf(network: Network, account: Account, { text, media, original }: ReadMessage) {
  if (!media || !original) return text === '' ? null : { text }
  if (media.problem) return null
  const file = await forward(network.media, account.phone, original)
  return file && { text, media: { description: original.description, file } }
}

function queueReceipt(account: Account, id: string, number: string, chat: Chat, at: number, type?: string) {
  const participant = chat.group ? { participant: lidJid(number), participant_pn: pnJid(number) } : {}
  return account.queue.add(node('receipt', { from: chat.jid, ...participant, id, type, t: seconds(at) }), at)
}

/**
 * A device that could not decrypt a message asks for it again, with keys for a new session. Call it inside
 * `account.apply` or `applyDurably`.
 */
export function askAgain(
  network: Network,
  account: Account,
  { id, receivedAt }: Pick<Outgoing, 'id' | 'receivedAt'>,
  { number, device }: Omit<Address, 'lid'>,
  chat: Chat,
): Effect[] {
  const scope = network.findAccount(number) ?? account
  const count = account.countRetry(device === 0 ? number : `${number}:${device}`, id)
  if (count > MAX_RETRIES) return []
  const t = seconds(receivedAt)
  const sender = chat.group
    ? { from: chat.jid, participant: lidJid(number), participant_pn: pnJid(number) }
    : { from: device === 0 ? chat.jid : lidJid(number, device) }
  const { registration, keys } = bundleNodes(scope.devices.get(number, device).bundle())
  const retry = node('retry', { count: count.toString(), id, t, v: '1' })
  const attrs = { ...sender, id, type: 'retry', t }
  const stanza = node('receipt', attrs, [retry, registration, node('keys', {}, keys)])
  return [release(network, account, account.queue.add(stanza, receivedAt))]
}
