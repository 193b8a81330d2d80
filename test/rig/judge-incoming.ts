import type { Arrival, Facts, IncomingText } from './facts.ts'
import { firstLineOf } from './texts.ts'

/** The limit of the text in an event, in UTF-16 units. */
const MAX_EVENT_UNITS = 65_536

/** The `data` of a `message.received`. */
interface Reported {
  id: string
  from: string
  addressing?: 'lid'
  text: string
  group?: string
  truncated?: boolean
  messageId?: string
}

/** The first lines of the texts that no event reported. */
export function lostIncoming({ incoming, arrivals }: Facts): string[] {
  const seen = new Set(received(arrivals).map(({ subject }) => subject))
  return incoming.map(({ text }) => firstLineOf(text)).filter(line => !seen.has(line))
}

/**
 * The events of one chat are in the order in which WhatsApp accepted the texts, under any name of their sender. The order of
 * creation is that of the event IDs, because attempts run concurrently. Texts that were undecryptable are exempt.
 */
export function incomingInOrder({ incoming, arrivals }: Facts): string[] {
  const byLine = byFirstLine(incoming)
  const firstEvents = new Map<string, string>()
  for (const { subject, eventId } of received(arrivals)) {
    const known = firstEvents.get(subject)
    if (known === undefined || eventId < known) firstEvents.set(subject, eventId)
  }
  const inOrder = [...firstEvents].sort(([, a], [, b]) => (a < b ? -1 : 1))
  const latest = new Map<string, { place: number; line: string }>()
  const violations: string[] = []
  for (const [line] of inOrder) {
    const text = byLine.get(line)
    if (text === undefined || text.place === null || text.undecryptable) continue
    const chat = `${text.instanceId} ${text.group ?? text.from}`
    const before = latest.get(chat)
    if (before !== undefined && text.place < before.place)
      violations.push(`The event of "${line}" was created after that of "${before.line}", which was written later.`)
    else latest.set(chat, { place: text.place, line })
  }
  return violations
}

/** Every event names its sender and carries the text as written, or the beginning of a long one. */
export function incomingAsWritten({ incoming, arrivals, wholeTexts }: Facts): string[] {
  const byLine = byFirstLine(incoming)
  const judged = new Set<string>()
  return received(arrivals).flatMap(({ subject, eventId, body }) => {
    const written = byLine.get(subject)
    if (written === undefined || judged.has(eventId)) return []
    judged.add(eventId)
    const { data } = JSON.parse(body) as { data: Reported }
    return [...wrongText(data, written, wholeTexts), ...wrongSender(data, written)].map(
      wrong => `The event of "${subject}" ${wrong}.`,
    )
  })
}

function wrongText(reported: Reported, { text }: IncomingText, wholeTexts: Facts['wholeTexts']): string[] {
  if (text.length <= MAX_EVENT_UNITS) return reported.text === text && !reported.truncated ? [] : ['has another text']
  if (!reported.truncated) return [`carries ${reported.text.length} units`]
  const begins =
    text.startsWith(reported.text) &&
    reported.text.length <= MAX_EVENT_UNITS &&
    reported.text.length >= MAX_EVENT_UNITS - 1
  return [
    ...(begins && reported.text.isWellFormed() ? [] : ['does not carry the beginning of the text']),
    ...(wholeTexts.get(reported.messageId ?? '') === text ? [] : ['names a message that has another text']),
  ]
}

function wrongSender(reported: Reported, { from, group, whatsappId }: IncomingText): string[] {
  const named = reported.addressing === 'lid' ? reported.from !== from : reported.from === from
  return [
    ...(named ? [] : ['names another sender']),
    ...(reported.group === group ? [] : ['names another group']),
    ...(whatsappId === undefined || reported.id === whatsappId ? [] : ['has another WhatsApp id']),
  ]
}

function received(arrivals: readonly Arrival[]): Arrival[] {
  return arrivals.filter(({ kind }) => kind === 'message.received')
}

function byFirstLine(incoming: readonly IncomingText[]): Map<string, IncomingText> {
  return new Map(incoming.map(text => [firstLineOf(text.text), text]))
}
