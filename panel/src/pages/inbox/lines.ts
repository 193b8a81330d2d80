import { replaceEqualDeep } from '@tanstack/react-query'
import type { ChatCommand, ChatEntry, ChatLine } from '../../api/types.ts'
import type { Words } from '../../i18n/en.ts'

/** Sent by the instance through Pombal. */
export type SentLine = Extract<ChatLine, { error: unknown }>
/** Delivered by WhatsApp: received, or written by the owner on another device. */
export type DeliveredLine = Exclude<ChatLine, SentLine>

export interface ShownReaction {
  emoji: string
  /** Null: the instance. */
  by: string | null
}

/** A message with everything that happened to it. */
export interface ShownLine {
  line: ChatLine
  reactions: ShownReaction[]
  /** A command that has not been executed yet. */
  pending: 'edit' | 'delete' | null
  failed: ChatCommand[]
}

const OWN = ''
const OTHER_SIDE = 'other'
const MAX_START = 200
/** The most UTF-16 units of a text that a preview draws. More do not fit on its line. */
const MAX_PREVIEW = 1_000

export function isSent(line: ChatLine): line is SentLine {
  return 'error' in line
}

/**
 * Messages with their reactions and changes, oldest first.
 * @param entries newest first
 * @param before lines that stay the same objects if nothing changed
 */
export function linesOf(entries: readonly ChatEntry[], before: readonly ShownLine[] = []): ShownLine[] {
  const lines: ShownLine[] = []
  const byId = new Map<string, ShownLine>()
  const reactions = new Map<string, Map<string, ShownReaction | null>>()
  const commands = new Map<string, Map<ChatCommand['command'], ChatCommand>>()
  const lids = lidsOf(entries)
  const react = (messageId: string, who: string, reaction: ShownReaction | null) => {
    const all = reactions.get(messageId) ?? new Map()
    reactions.set(messageId, all.set(who, reaction))
  }
  for (const entry of entries.toReversed()) {
    if (entry.direction === 'command') {
      // A later command of the same kind replaces an earlier one.
      const all = commands.get(entry.messageId) ?? new Map()
      commands.set(entry.messageId, all.set(entry.command, entry))
      if (entry.command === 'reaction' && entry.status !== 'failed')
        react(entry.messageId, OWN, entry.emoji === null ? null : { emoji: entry.emoji, by: null })
    } else if (!isSent(entry) && entry.reaction) {
      const { messageId, emoji } = entry.reaction
      const who = entry.direction === 'in' ? personOf(entry, lids) : OWN
      if (messageId !== null) react(messageId, who, emoji === null ? null : { emoji, by: authorOf(entry) })
    } else if (!byId.has(entry.id)) {
      const shown: ShownLine = { line: entry, reactions: [], pending: null, failed: [] }
      byId.set(entry.id, shown)
      lines.push(shown)
    }
  }
  for (const [id, all] of reactions) {
    const shown = byId.get(id)
    if (shown) shown.reactions = [...all.values()].filter(reaction => reaction !== null)
  }
  for (const [id, all] of commands) {
    const shown = byId.get(id)
    if (!shown) continue
    const queued = ['delete', 'edit'] as const
    shown.pending = queued.find(kind => all.get(kind)?.status === 'queued') ?? null
    shown.failed = [...all.values()].filter(({ status }) => status === 'failed')
  }
  const known = new Map(before.map(shown => [shown.line.id, shown]))
  return lines.map(shown => replaceEqualDeep(known.get(shown.line.id), shown))
}

type ReceivedLine = Extract<ChatLine, { direction: 'in' }>

/** The LIDs of the phone numbers in a conversation. */
function lidsOf(entries: readonly ChatEntry[]): Map<string, string> {
  const lids = new Map<string, string>()
  for (const entry of entries)
    if (entry.direction === 'in' && entry.phone !== null && entry.lid !== null) lids.set(entry.phone, entry.lid)
  return lids
}

/** One value for each person, although the phone number or the LID may become known later than the other. */
function personOf({ chat, phone, lid, from }: ReceivedLine, lids: ReadonlyMap<string, string>): string {
  if (!chat.endsWith('@g.us')) return OTHER_SIDE
  return lid ?? lids.get(phone ?? '') ?? phone ?? from
}

function senderOf({ phone, lid, from }: ReceivedLine): string {
  return phone === null ? (lid ?? from) : `+${phone}`
}

/** Who wrote a message; null for the instance. */
export function authorOf(line: ChatLine): string | null {
  return line.direction === 'in' ? (line.name ?? senderOf(line)) : null
}

export function chatOf(line: ChatLine): string {
  return isSent(line) ? line.to : line.chat
}

/** The beginning of a text, never cut within a surrogate pair. */
export function cutText(text: string, maxUnits: number): string {
  return text.length > maxUnits ? text.slice(0, maxUnits).replace(/[\uD800-\uDBFF]$/, '') : text
}

/** One line that stands for a message in a list. */
export function previewOf(line: ChatLine, words: Words): string {
  if (line.deletedAt !== null) return words.inbox.deleted
  const text = cutText(line.text ?? '', MAX_PREVIEW)
  if (isSent(line)) return line.media === undefined ? text : `📎 ${text || (line.media.filename ?? '')}`.trim()
  if (line.reaction) return line.reaction.emoji ?? words.inbox.types.reaction
  const about = text || line.poll?.question || line.location?.name || line.contacts?.map(({ name }) => name).join(', ')
  if (line.type === 'text') return text
  return about ? `${line.media ? '📎 ' : ''}${about}` : words.inbox.types[line.type]
}

/** The start of a message, with which a dialog names it. */
export function startOf(line: ChatLine, words: Words): string {
  const text = [...previewOf(line, words)]
  return text.length > MAX_START ? `${text.slice(0, MAX_START).join('')}…` : text.join('')
}
