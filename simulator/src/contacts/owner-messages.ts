/** The messages that an account's owner writes on the phone. */
import type { Account, Effect } from '../account.ts'
import { isAssistant, isGroup, isNumber, lidJid, pnJid } from '../addresses.ts'
import { asStated, uploadOf } from '../media/contact-files.ts'
import type { Network } from '../network.ts'
import { release } from '../server/delivery.ts'
import { type OwnerMessage, SimulatorError } from '../types.ts'
import { node, seconds } from '../wire/nodes.ts'
import type { Original } from '../wire/stanza-queue.ts'
import { contactContent, problemOfKind } from './contact-content.ts'
import { enc, encryptForClient, encryptForGroup, messageOf, messageStanza, type Writing } from './contact-messages.ts'
import { createMessageId, encoded, readContent, sentContent } from './content.ts'
import { otherMembers } from './groups.ts'
import { factsOf, kindOf } from './message-facts.ts'

/**
 * The owner of an account writes on the phone. The contact, or the members of the group, receive the message, and a copy is
 * queued for the linked client. @throws SimulatorError
 */
export async function writeAsOwner(network: Network, given: OwnerMessage): Promise<{ id: string }> {
  const { phone, to, text, media: file, quote } = given
  const problem = isNumber(to) || isGroup(to) ? problemOfKind(given) : '`to` must be a phone number or a group'
  if (problem) throw new SimulatorError('invalid_argument', problem)
  const account = network.getAccount(phone)
  const media = file && { description: file, file: await uploadOf(network.media, phone, file) }
  let id = ''
  await account.applyDurably(async () => {
    const message =
      contactContent(account, { ...given, from: phone, ...(isGroup(to) && { group: to }) }, to) ?? undefined
    const written = await writeOnPhone(network, account, to, { text, media, message, quote }, Date.now())
    id = written.id
    return written.effects
  })
  return { id }
}

/** Call it inside `account.apply` or `applyDurably`. */
export async function writeOnPhone(
  network: Network,
  account: Account,
  to: string,
  writing: Pick<Writing, 'text' | 'media' | 'message' | 'quote'>,
  at: number,
): Promise<{ id: string; effects: Effect[] }> {
  const id = createMessageId()
  const { phone } = account
  const effects: Effect[] = []
  const group = isGroup(to) ? to : undefined
  const message = messageOf(account, writing)
  const content = encoded(message)
  const read = readContent(content)
  for (const reader of group ? otherMembers(account, group) : isAssistant(to) ? [] : [to]) {
    const facts = factsOf(account.inboxes, read, phone)
    const received = { id, from: phone, ...facts, ...(group && { group }), receivedAt: at }
    account.inboxes.receive(reader, { ...received, ...(read.media && { media: asStated(read.media) }) }, content)
  }
  if (!account.companion) return { id, effects }
  const copy = group ? content : sentContent(isAssistant(to) ? to : lidJid(to), message)
  const original: Original = { from: phone, group, content: copy }
  const parts = group
    ? await encryptForGroup(network, account, original, effects)
    : [enc(await encryptForClient(network, account, phone, copy, effects))]
  const kind = kindOf(read)
  const stanza = group
    ? messageStanza(account, original, id, at, parts, kind)
    : node('message', { ...copyAttributes(phone, to), id, t: seconds(at), ...kind.attrs }, [...parts, ...kind.parts])
  effects.push(release(network, account, account.queue.add(stanza, at, original)))
  return { id, effects }
}

/** A copy comes from the phone and names the recipient. */
function copyAttributes(phone: string, to: string) {
  if (isAssistant(to)) return { from: lidJid(phone), recipient: to }
  return { from: lidJid(phone), recipient: lidJid(to), peer_recipient_pn: pnJid(to), addressing_mode: 'lid' }
}
