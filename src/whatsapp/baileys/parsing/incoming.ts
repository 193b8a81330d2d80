import { isJidBroadcast, isJidGroup, isJidNewsletter, isJidStatusBroadcast, type WAMessage } from 'baileys'
import type { IncomingChange, IncomingMessage, IncomingType } from '../../../domain/incoming-message.ts'
import { isSelf, isWellFormed, lidOf, numberOf, type Self, userOf } from '../addresses.ts'
import type { Correspondents } from '../correspondents.ts'
import { type Content, isSecondCopy, openContent } from './content.ts'
import { parseChange } from './incoming-change.ts'
import { cut, parseDetails } from './incoming-details.ts'
import { parseFile } from './incoming-file.ts'
import { findReferencedAuthor } from './referenced-author.ts'

/** The pairs of numbers and LIDs. Null if a pair is unknown. */
export interface LidMapping {
  getPNForLID(lid: string): Promise<string | null>
  /** Queries WhatsApp if the pair is not stored. */
  getLIDForPN(pn: string): Promise<string | null>
}

type IncomingContent = Pick<IncomingMessage, 'type' | 'text'>

/** The type and text of a message by its content field. The first field that is set decides. */
const KINDS: readonly (readonly [keyof Content, IncomingType, ((content: Content) => string | null | undefined)?])[] = [
  ['conversation', 'text', content => content.conversation],
  ['extendedTextMessage', 'text', content => content.extendedTextMessage?.text],
  ['imageMessage', 'image', content => content.imageMessage?.caption],
  ['videoMessage', 'video', content => content.videoMessage?.caption],
  ['ptvMessage', 'video', content => content.ptvMessage?.caption],
  ['audioMessage', 'audio'],
  ['documentMessage', 'document', content => content.documentMessage?.caption],
  ['stickerMessage', 'sticker'],
  ['lottieStickerMessage', 'sticker'],
  ['locationMessage', 'location', content => content.locationMessage?.comment],
  ['liveLocationMessage', 'location', content => content.liveLocationMessage?.caption],
  ['contactMessage', 'contact'],
  ['contactsArrayMessage', 'contact'],
  ['reactionMessage', 'reaction', content => content.reactionMessage?.text],
  ['encReactionMessage', 'reaction'],
  ['pollCreationMessage', 'poll'],
  ['pollCreationMessageV2', 'poll'],
  ['pollCreationMessageV3', 'poll'],
  ['pollCreationMessageV5', 'poll'],
  ['eventMessage', 'other', content => content.eventMessage?.name],
  ['orderMessage', 'other', content => content.orderMessage?.message || content.orderMessage?.orderTitle],
  ['productMessage', 'other', content => content.productMessage?.body || content.productMessage?.product?.title],
  ['groupInviteMessage', 'other', content => content.groupInviteMessage?.caption],
  ['newsletterAdminInviteMessage', 'other', content => content.newsletterAdminInviteMessage?.caption],
  ['scheduledCallCreationMessage', 'other', content => content.scheduledCallCreationMessage?.title],
  ['stickerPackMessage', 'other', content => content.stickerPackMessage?.caption || content.stickerPackMessage?.name],
  ['invoiceMessage', 'other', content => content.invoiceMessage?.note],
  ['requestPaymentMessage', 'other', content => noteOf(content.requestPaymentMessage)],
  ['sendPaymentMessage', 'other', content => noteOf(content.sendPaymentMessage)],
  ['questionResponseMessage', 'other', content => content.questionResponseMessage?.text],
  ['statusQuestionAnswerMessage', 'other', content => content.statusQuestionAnswerMessage?.text],
  ['pollResultSnapshotMessage', 'other', content => content.pollResultSnapshotMessage?.name],
  ['pollResultSnapshotMessageV3', 'other', content => content.pollResultSnapshotMessageV3?.name],
]

function noteOf(payment: { noteMessage?: Content | null } | null | undefined) {
  return payment?.noteMessage?.extendedTextMessage?.text || payment?.noteMessage?.conversation
}

/** Fields without an event: data of the protocol that no person wrote, statuses, and history. */
const PROTOCOL_FIELDS: ReadonlySet<string> = new Set<keyof Content>([
  'protocolMessage',
  'senderKeyDistributionMessage',
  'fastRatchetKeySenderKeyDistributionMessage',
  'messageContextInfo',
  'deviceSentMessage',
  'editedMessage',
  'limitSharingMessage',
  'keepInChatMessage',
  'pinInChatMessage',
  'pollUpdateMessage',
  'secretEncryptedMessage',
  'placeholderMessage',
  'call',
  'albumMessage',
  'groupStatusMessage',
  'groupStatusMessageV2',
  'groupStatusMentionMessage',
  'statusMentionMessage',
  'statusNotificationMessage',
  'statusAddYours',
  'messageHistoryBundle',
  'messageHistoryNotice',
  'stickerSyncRmrMessage',
])

const HAVE_FILES: ReadonlySet<IncomingType> = new Set(['image', 'video', 'audio', 'document', 'sticker'])

/** The last second with a year of four digits (contract §4). */
const LAST_MOMENT = Date.parse('9999-12-31T23:59:59Z')

/**
 * A message to the instance, a message that its owner wrote on another device, or an edit or deletion of a message.
 * @returns null for messages without an event (contract §4): statuses, newsletters, history, protocol messages, second copies
 * of pictures and videos, stubs and placeholders
 */
export async function parseIncoming(
  message: WAMessage,
  mapping: LidMapping,
  self: Self,
  correspondents: Pick<Correspondents, 'addressesOf'>,
): Promise<IncomingMessage | IncomingChange | null> {
  const { key } = message
  const chat = key.remoteJid
  if (!chat || !key.id || isJidNewsletter(chat) || isJidStatusBroadcast(chat)) return null
  const group = isJidGroup(chat) === true
  // Baileys does not recognise our own messages if our LID is unknown, or in a broadcast list that names the LID.
  const isOwn = key.fromMe === true || [key.participant, key.participantAlt].some(jid => isSelf(jid, self))
  if (isOwn && isJidBroadcast(chat)) return null
  const content = isOwn ? (message.message?.deviceSentMessage?.message ?? message.message) : message.message
  const kind = parseContent(content)
  const change = kind ? null : parseChange(message, content, { group, isOwn, self }, textOfEdit)
  if ((!kind && !change) || (kind && isSecondCopy(message.message))) return null
  const who = await (isOwn ? findOwn(key, group, mapping, self) : findOther(key, group, mapping, self))
  if (!who) return null
  const { address, isLidLookedUp, ...from } = who
  const arrived = {
    id: key.id,
    ...from,
    chat: group ? chat : address,
    username: usernameOf(key, group, isOwn),
    ...(group && { group: chat }),
    sentAt: sentAt(message.messageTimestamp),
  }
  if (change) {
    const { authorJid, ...changed } = change
    const author = authorJid === undefined ? null : await findAuthor(authorJid, correspondents)
    return { ...arrived, ...changed, ...(isLidLookedUp && { isLidLookedUp }), ...(author && { author }) }
  }
  const file = HAVE_FILES.has(kind!.type) ? parseFile(content, { ...key, fromMe: isOwn }) : undefined
  const details = parseDetails(content)
  const names = from.lid === null ? [address] : [address, from.lid]
  const referencedAuthor =
    details?.quote || details?.reaction
      ? await findReferencedAuthor(content, { isOwn, group, self, names }, correspondents)
      : undefined
  return {
    ...arrived,
    ...kind!,
    ...(message.pushName && !isOwn && { name: cut(message.pushName) }),
    ...(file && { file }),
    ...(details && { details }),
    ...(referencedAuthor && { referencedAuthor }),
  }
}

type Key = WAMessage['key']

async function findOther(key: Key, group: boolean, mapping: LidMapping, self: Self): Promise<Sender | null> {
  const { remoteJid: chat } = key
  const [sender, alternate] =
    group || isJidBroadcast(chat!) ? [key.participant, key.participantAlt] : [chat, key.remoteJidAlt]
  const found = await findSender(sender, alternate, mapping)
  return !found || isSelf(sender, self) || found.from === userOf(self.id) ? null : found
}

/** For a message that the owner wrote: `from` is our own number, the address and LID are those of the other side. */
async function findOwn(
  key: Key,
  group: boolean,
  mapping: LidMapping,
  self: Self,
): Promise<(Sender & { written: true }) | null> {
  const { remoteJid: chat, remoteJidAlt } = key
  const from = userOf(self.id)
  if (from === undefined) return null
  if (group) return { written: true, from, lid: null, address: chat! }
  // The alternate address may be that of the sender, which is our own.
  const alternate = isSelf(remoteJidAlt, self) && !isSelf(chat, self) ? undefined : remoteJidAlt
  const other = await findSender(chat, alternate, mapping)
  if (!other) return null
  const { addressing: _, ...named } = other
  return { ...named, written: true, from }
}

function usernameOf(key: Key, group: boolean, isOwn: boolean): string | null {
  if (group && isOwn) return null
  return (group ? key.participantUsername : key.remoteJidUsername)?.replace(/^@/, '') || null
}

/** The text of an edited message. Undefined if it has no text. Null if no person wrote it. */
function textOfEdit(edited: Content): string | undefined | null {
  const content = parseContent(edited)
  return content === null ? null : content.text
}

/** WhatsApp's time, or ours if the store would refuse it. WhatsApp redelivers a message until it is recorded. */
function sentAt(timestamp: WAMessage['messageTimestamp']): number {
  const at = Math.floor(Number(timestamp)) * 1_000
  return at > 0 && at <= LAST_MOMENT ? at : Date.now()
}

/** Type and text. Null if no person wrote the content. */
export function parseContent(wrapped: Content | null | undefined): IncomingContent | null {
  const content = openContent(wrapped)
  if (!content || content.protocolMessage) return null
  for (const [field, type, textOf] of KINDS) {
    if (!isSet(content, field)) continue
    const text = textOf?.(content)
    return text || (type === 'text' && text === '') ? { type, text } : { type }
  }
  const rest = Object.keys(content).filter(
    field => isSet(content, field as keyof Content) && !PROTOCOL_FIELDS.has(field),
  )
  return rest.length > 0 ? { type: 'other' } : null
}

function isSet(content: Content, field: keyof Content): boolean {
  return Object.hasOwn(content, field) && content[field] !== null && content[field] !== undefined
}

interface Sender extends Pick<IncomingMessage, 'from' | 'addressing' | 'lid'> {
  /** The name of the sender's chat. */
  address: string
  isLidLookedUp?: true
}

/** The sender's number and LID, from its address, the alternate address or the mapping. */
async function findSender(
  sender: string | null | undefined,
  alternate: string | null | undefined,
  mapping: LidMapping,
): Promise<Sender | null> {
  const user = userOf(sender)
  if (!sender || !user) return null
  const named = numberOf(sender) ?? numberOf(alternate)
  const namedLid = lidOf(sender) ?? lidOf(alternate)
  const number = named ?? (namedLid && numberOf(await mapping.getPNForLID(`${namedLid}@lid`)))
  const lid = namedLid ?? (number && (await findLid(number, mapping)))
  const lidAddress = lid ? `${lid}@lid` : null
  const isLidLookedUp = lid && !namedLid ? { isLidLookedUp: true as const } : {}
  if (number) return { from: number, lid: lidAddress, address: number, ...isLidLookedUp }
  if (lid && lidAddress) return { from: lid, addressing: 'lid', lid: lidAddress, address: lidAddress }
  const address = `${user}@${sender.slice(sender.indexOf('@') + 1)}`
  return { from: user.replaceAll(/\D/g, ''), addressing: 'other', lid: null, address }
}

const KNOWS_NOBODY: LidMapping = { getPNForLID: async () => null, getLIDForPN: async () => null }

/**
 * Finds the author of a message that somebody deletes in a group. Only stored pairs are used, and WhatsApp is not asked,
 * because the sender of the deletion chooses the address. Null if the address is malformed.
 */
async function findAuthor(
  jid: string,
  correspondents: Pick<Correspondents, 'addressesOf'>,
): Promise<IncomingChange['author'] | null> {
  if (!isWellFormed(jid)) return null
  const [, alternate] = await correspondents.addressesOf(jid)
  const author = await findSender(jid, alternate, KNOWS_NOBODY)
  if (!author) return null
  const { from, addressing, lid } = author
  return { from, ...(addressing && { addressing }), lid }
}

/** The LID is optional: if the lookup fails, the message is recorded without it. */
async function findLid(number: string, mapping: LidMapping): Promise<string | undefined> {
  const found = await mapping.getLIDForPN(`${number}@s.whatsapp.net`).catch(() => null)
  return lidOf(found)
}
