import {
  isJidBroadcast,
  isJidGroup,
  isJidNewsletter,
  isJidStatusBroadcast,
  normalizeMessageContent,
  type proto,
  type WAMessage,
} from 'baileys'
import type { IncomingMessage, IncomingType } from '../../domain/event.ts'
import { isSelf, lidOf, numberOf, type Self, userOf } from './addresses.ts'

/** Which LID is which number, as far as WhatsApp has said it; null where it has not. */
export interface LidMapping {
  getPNForLID(lid: string): Promise<string | null>
  getLIDForPN(pn: string): Promise<string | null>
}

type Content = proto.IMessage

export type IncomingContent = Pick<IncomingMessage, 'type' | 'text'>

/** What the content of a message is, by the field that is set; the first that is decides. */
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
  ['pollUpdateMessage', 'poll'],
]

/** Fields that are housekeeping between WhatsApp's programs, not something that a person wrote. */
const HOUSEKEEPING: ReadonlySet<string> = new Set<keyof Content>([
  'protocolMessage',
  'senderKeyDistributionMessage',
  'fastRatchetKeySenderKeyDistributionMessage',
  'messageContextInfo',
  'deviceSentMessage',
  'keepInChatMessage',
  'pinInChatMessage',
  'secretEncryptedMessage',
  'placeholderMessage',
  'call',
])

/** A year of four digits (contract §4). */
const LAST_MOMENT = Date.parse('9999-12-31T23:59:59Z')

/**
 * @returns null for what is not an event (contract §4): own messages, status broadcasts, newsletters, protocol
 * messages, stubs and placeholders
 */
export async function parseIncoming(
  message: WAMessage,
  mapping: LidMapping,
  self: Self,
): Promise<IncomingMessage | null> {
  const { key } = message
  const chat = key.remoteJid
  if (!chat || !key.id || key.fromMe || isJidNewsletter(chat) || isJidStatusBroadcast(chat)) return null
  const kind = parseContent(message.message)
  if (!kind) return null
  const group = isJidGroup(chat)
  const [sender, alternate] =
    group || isJidBroadcast(chat) ? [key.participant, key.participantAlt] : [chat, key.remoteJidAlt]
  const found = await findSender(sender, alternate, mapping)
  // Where WhatsApp has not told us our LID, or a broadcast list names it, Baileys does not find us in the sender.
  if (!found || isSelf(sender, self) || found.from === userOf(self.id)) return null
  const { address, ...from } = found
  return {
    id: key.id,
    ...from,
    chat: group ? chat : address,
    username: (group ? key.participantUsername : key.remoteJidUsername)?.replace(/^@/, '') || null,
    ...kind,
    ...(group && { group: chat }),
    ...(message.pushName && { name: message.pushName }),
    sentAt: sentAt(message.messageTimestamp),
  }
}

/** WhatsApp's time, or ours where that is none that an event can bear: it would be refused again at every delivery. */
function sentAt(timestamp: WAMessage['messageTimestamp']): number {
  const at = Math.floor(Number(timestamp)) * 1_000
  return at > 0 && at <= LAST_MOMENT ? at : Date.now()
}

/** Type and text; null for what nobody wrote. */
export function parseContent(wrapped: Content | null | undefined): IncomingContent | null {
  const content = normalizeMessageContent(wrapped)
  if (!content || content.protocolMessage) return null
  for (const [field, type, textOf] of KINDS) {
    if (!isSet(content, field)) continue
    const text = textOf?.(content)
    return text || (type === 'text' && text === '') ? { type, text } : { type }
  }
  const rest = Object.keys(content).filter(field => isSet(content, field as keyof Content) && !HOUSEKEEPING.has(field))
  return rest.length > 0 ? { type: 'other' } : null
}

function isSet(content: Content, field: keyof Content): boolean {
  return Object.hasOwn(content, field) && content[field] !== null && content[field] !== undefined
}

interface Sender extends Pick<IncomingMessage, 'from' | 'addressing' | 'lid'> {
  /** What its chat is called. */
  address: string
}

/** Its number and its LID, each wherever it can be known: from the address itself, the alternate one, or the mapping. */
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
  if (number) return { from: number, lid: lidAddress, address: number }
  if (lid && lidAddress) return { from: lid, addressing: 'lid', lid: lidAddress, address: lidAddress }
  const address = `${user}@${sender.slice(sender.indexOf('@') + 1)}`
  return { from: user.replaceAll(/\D/g, ''), addressing: 'other', lid: null, address }
}

/** Only another name: without it the message is recorded all the same. */
async function findLid(number: string, mapping: LidMapping): Promise<string | undefined> {
  const found = await mapping.getLIDForPN(`${number}@s.whatsapp.net`).catch(() => null)
  return lidOf(found)
}
