import type { proto } from 'baileys'
import type { IncomingDetails } from '../../../domain/incoming-message.ts'
import { lidAddressOf, numberOf } from '../addresses.ts'
import { isViewOnce, openContent } from './content.ts'

/** The sender chooses these texts, so an event contains only the beginning of a longer text. */
const MAX_UNITS = 1_000
const MAX_VCARD_UNITS = 4_096
const MAX_MENTIONS = 1_024
const MAX_CONTACTS = 20
const MAX_OPTIONS = 20
const MAX_ID_LENGTH = 100
/** A number or a LID address. The sender chooses the text of mentions and quoted addresses too. */
const NAME = /^\d{1,20}(@lid)?$/

/** The parts of a message other than its type, text and file. Undefined if there are none. */
export function parseDetails(wrapped: proto.IMessage | null | undefined): IncomingDetails | undefined {
  const content = openContent(wrapped)
  if (!content) return undefined
  const context = contextOf(content)
  const details: IncomingDetails = {
    ...part('quote', quoteOf(context)),
    ...part('mentions', mentionsOf(context)),
    ...part('referral', referralOf(context)),
    ...part('reaction', reactionOf(content.reactionMessage)),
    ...part('location', locationOf(content)),
    ...part('contacts', contactsOf(content)),
    ...part('poll', pollOf(content)),
    ...(isViewOnce(wrapped) && { viewOnce: true }),
  }
  return Object.keys(details).length > 0 ? details : undefined
}

function part<K extends keyof IncomingDetails>(name: K, value: IncomingDetails[K] | null) {
  return value === null ? {} : { [name]: value }
}

export function contextOf(content: proto.IMessage): proto.IContextInfo | null {
  for (const one of Object.values(content)) {
    const context = (one as { contextInfo?: proto.IContextInfo | null } | null)?.contextInfo
    if (context) return context
  }
  return null
}

function quoteOf(context: proto.IContextInfo | null): IncomingDetails['quote'] | null {
  const whatsappId = context?.stanzaId
  if (!whatsappId || !context.quotedMessage) return null
  return {
    whatsappId: cut(whatsappId, MAX_ID_LENGTH),
    from: nameOf(context.participant),
    text: textOf(context.quotedMessage),
  }
}

function textOf(message: proto.IMessage): string | null {
  const { conversation, extendedTextMessage, imageMessage, videoMessage, documentMessage } = openContent(message) ?? {}
  const caption = imageMessage?.caption || videoMessage?.caption || documentMessage?.caption
  return cutOrNull(conversation || extendedTextMessage?.text || caption)
}

function mentionsOf(context: proto.IContextInfo | null): string[] | null {
  const names = (context?.mentionedJid ?? []).slice(0, MAX_MENTIONS).map(nameOf)
  const known = names.filter(name => name !== null)
  return known.length > 0 ? known : null
}

/** The advertisement that the sender answers. */
function referralOf(context: proto.IContextInfo | null): IncomingDetails['referral'] | null {
  const ad = context?.externalAdReply
  if (!ad || !(ad.sourceId || ad.ctwaClid)) return null
  return {
    sourceId: cutOrNull(ad.sourceId),
    clickId: cutOrNull(ad.ctwaClid),
    headline: cutOrNull(ad.title),
    url: cutOrNull(ad.sourceUrl),
  }
}

function reactionOf(reaction: proto.Message.IReactionMessage | null | undefined): IncomingDetails['reaction'] | null {
  const whatsappId = reaction?.key?.id
  return whatsappId ? { whatsappId: cut(whatsappId, MAX_ID_LENGTH), emoji: cutOrNull(reaction.text) } : null
}

function locationOf({ locationMessage, liveLocationMessage }: proto.IMessage): IncomingDetails['location'] | null {
  const place = locationMessage ?? liveLocationMessage
  const { degreesLatitude: latitude, degreesLongitude: longitude } = place ?? {}
  if (!isDegrees(latitude) || !isDegrees(longitude)) return null
  const name = cutOrNull(locationMessage?.name)
  const address = cutOrNull(locationMessage?.address)
  return { latitude, longitude, ...(name !== null && { name }), ...(address !== null && { address }) }
}

function isDegrees(value: number | null | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function contactsOf({ contactMessage, contactsArrayMessage }: proto.IMessage): IncomingDetails['contacts'] | null {
  const cards = contactMessage ? [contactMessage] : (contactsArrayMessage?.contacts ?? [])
  if (cards.length === 0) return null
  return cards
    .slice(0, MAX_CONTACTS)
    .map(({ displayName, vcard }) => ({ name: cutOrNull(displayName), vcard: cut(vcard ?? '', MAX_VCARD_UNITS) }))
}

function pollOf(content: proto.IMessage): IncomingDetails['poll'] | null {
  const { pollCreationMessage, pollCreationMessageV2, pollCreationMessageV3, pollCreationMessageV5 } = content
  const poll = pollCreationMessage ?? pollCreationMessageV2 ?? pollCreationMessageV3 ?? pollCreationMessageV5
  if (!poll) return null
  const options = (poll.options ?? []).slice(0, MAX_OPTIONS).map(({ optionName }) => cut(optionName ?? ''))
  return { question: cut(poll.name ?? ''), options, selectable: poll.selectableOptionsCount || null }
}

/** A person's number, else the LID address. */
export function nameOf(jid: string | null | undefined): string | null {
  const name = numberOf(jid) ?? lidAddressOf(jid)
  return name !== null && NAME.test(name) ? name : null
}

function cutOrNull(text: string | null | undefined): string | null {
  return text ? cut(text) : null
}

/** Cuts the text, but never inside a surrogate pair. */
export function cut(text: string, units = MAX_UNITS): string {
  if (text.length <= units) return text
  return text.slice(0, (text.codePointAt(units - 1) ?? 0) > 0xffff ? units - 1 : units)
}
