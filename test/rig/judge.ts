import type { AcceptedText, Arrival, Facts } from './facts.ts'
import { incomingAsWritten, incomingInOrder, lostIncoming } from './judge-incoming.ts'
import { firstLineOf } from './texts.ts'

/** Attempts that an endpoint may have in flight when the service is killed (contract §5). Each instance has one endpoint. */
const IN_FLIGHT = 8
const WAY: readonly string[] = ['message.sent', 'message.delivered', 'message.read']

export interface Verdict {
  /** One sentence per broken guarantee. Empty if all held. */
  violations: string[]
  /** Violations: texts or events that are missing. */
  lost: number
  /** Violations: texts shown, or changes reported, under more than one ID. */
  doubled: number
  /** Violations: texts of one chat in either direction, or events of one message, in the wrong order. */
  outOfOrder: number
  /** The first lines of incoming texts that no event reported. */
  lostIncoming: string[]
  /** Attempts whose delivery had already arrived. */
  repeatedAttempts: number
  /** The highest number of them that one kill, or another incident, caused for one instance. */
  mostRepeatedPerKill: number
  /** Texts that reached a phone more than once, each under one WhatsApp id. */
  repeatedOnWire: number
  /** Texts that a phone could not read at first and requested again. */
  askedFor: number
  /** Incoming texts that were made undecryptable. */
  undecryptable: number
  /** Other incoming texts that the instance requested again. */
  incomingRequestedAgain: number
}

/**
 * Compares the facts with the guarantees: nothing lost, nothing shown twice, every change reported in order.
 * @param ordersIncoming whether event IDs reveal the order of creation. They do not if the clock jumps
 */
export function judge(facts: Facts, { ordersIncoming = true } = {}): Verdict {
  const repeats = countRepeats(facts.arrivals)
  const shown = timesShown(facts)
  const lost = [...shown.lost, ...missingEvents(facts)]
  const doubled = [...shown.doubled, ...oneEventPerFact(facts)]
  const outOfOrder = [...inOrder(facts), ...shownInOrder(facts), ...(ordersIncoming ? incomingInOrder(facts) : [])]
  return {
    violations: [
      ...lost,
      ...doubled,
      ...outOfOrder,
      ...nothingElse(facts),
      ...incomingAsWritten(facts),
      ...sameBytes(facts.arrivals),
      ...signed(facts.arrivals),
      ...finished(facts),
      ...onlyInFlightRepeated(repeats),
    ],
    lost: lost.length,
    doubled: doubled.length,
    outOfOrder: outOfOrder.length,
    lostIncoming: lostIncoming(facts),
    repeatedAttempts: repeats.total,
    mostRepeatedPerKill: Math.max(0, ...repeats.byKill.values()),
    repeatedOnWire: [...facts.phones.values()].flat().filter(entry => entry.copies > 1).length,
    askedFor: [...facts.phones.values()].flat().filter(entry => entry.askedFor !== undefined).length,
    undecryptable: facts.incoming.filter(({ undecryptable }) => undecryptable).length,
    incomingRequestedAgain: facts.incoming.filter(text => text.askedFor !== undefined && !text.undecryptable).length,
  }
}

function timesShown({ accepted, phones }: Facts): { lost: string[]; doubled: string[] } {
  const lost: string[] = []
  const doubled: string[] = []
  const shown = new Map([...phones].map(([phone, entries]) => [phone, groupBy(entries, ({ text }) => text)]))
  for (const { messageId, text, phones: expected } of accepted) {
    for (const phone of expected) {
      const times = shown.get(phone)?.get(text)?.length ?? 0
      if (times !== 1) (times === 0 ? lost : doubled).push(`${messageId} is ${times} times on the phone ${phone}.`)
    }
  }
  for (const [phone, entries] of phones) {
    if (new Set(entries.map(({ id }) => id)).size < entries.length) doubled.push(`${phone} shows an id twice.`)
  }
  return { lost, doubled }
}

function nothingElse({ accepted, incoming, arrivals, phones }: Facts): string[] {
  const known = new Set(accepted.map(({ text }) => text))
  const subjects = new Set([
    ...accepted.map(({ messageId }) => messageId),
    ...incoming.map(({ text }) => firstLineOf(text)),
  ])
  const shown = [...phones].flatMap(([phone, entries]) =>
    entries.filter(({ text }) => !known.has(text)).map(({ id }) => `${phone} shows ${id}, which nobody sent.`),
  )
  const invented = arrivals
    .filter(({ subject }) => !subjects.has(subject))
    .map(({ kind, subject, instanceId }) => `${kind} ${subject} ${instanceId} was reported but never happened.`)
  return [...shown, ...new Set(invented)]
}

/**
 * If one message had its 202 before the first call of another one to the same chat, the phone shows it first. All spellings of a
 * number are one chat.
 */
function shownInOrder({ accepted, phones }: Facts): string[] {
  const violations: string[] = []
  const byText = new Map(accepted.map(message => [message.text, message]))
  for (const [phone, entries] of phones) {
    const latest = new Map<string, AcceptedText>()
    for (const { text } of entries) {
      const message = byText.get(text)
      if (message === undefined) continue
      const lane = `${message.instanceId} ${message.chat}`
      const before = latest.get(lane)
      if (before !== undefined && message.acceptedAt < before.offeredAt)
        violations.push(`${phone} shows ${message.messageId} after ${before.messageId}, which was sent later.`)
      if (before === undefined || message.offeredAt > before.offeredAt) latest.set(lane, message)
    }
  }
  return violations
}

function missingEvents({ accepted, arrivals }: Facts): string[] {
  const seen = new Set(arrivals.map(({ kind, subject }) => `${kind} ${subject}`))
  return accepted.flatMap(({ messageId, end }) =>
    expectedKinds(end)
      .filter(kind => !seen.has(`${kind} ${messageId}`))
      .map(kind => `No ${kind} of ${messageId} arrived.`),
  )
}

/** The events of a message whose last state is `end`. */
export function expectedKinds(end: AcceptedText['end']): readonly string[] {
  return WAY.slice(0, WAY.indexOf(`message.${end}`) + 1)
}

/** An event is posted only after its predecessor was delivered, so the predecessor never arrives after it. */
function inOrder({ arrivals, accepted }: Facts): string[] {
  const bySubject = groupBy(arrivals, ({ subject }) => subject)
  return accepted.flatMap(({ messageId, end }) => {
    const expected = expectedKinds(end)
    const kinds = (bySubject.get(messageId) ?? []).map(({ kind }) => kind)
    const ranks = kinds.map(kind => expected.indexOf(kind))
    const ordered = ranks.every((rank, index) => rank >= 0 && rank >= (ranks[index - 1] ?? 0))
    return ordered ? [] : [`The events of ${messageId} came as ${kinds.join(', ')}.`]
  })
}

function oneEventPerFact({ arrivals }: Facts): string[] {
  return [...groupBy(arrivals, ({ instanceId, kind, subject }) => `${kind} ${subject} ${instanceId}`)]
    .map(([fact, posted]) => ({ fact, ids: new Set(posted.map(({ eventId }) => eventId)) }))
    .filter(({ ids }) => ids.size > 1)
    .map(({ fact, ids }) => `${fact} was reported under ${ids.size} event IDs.`)
}

function sameBytes(arrivals: readonly Arrival[]): string[] {
  return [...groupBy(arrivals, ({ eventId }) => eventId)]
    .filter(([, posted]) => new Set(posted.map(({ body }) => body)).size > 1)
    .map(([eventId]) => `${eventId} was posted with different bytes.`)
}

function signed(arrivals: readonly Arrival[]): string[] {
  return arrivals.filter(arrival => !arrival.signed).map(({ eventId }) => `${eventId} has an invalid signature.`)
}

function finished({ accepted, states }: Facts): string[] {
  return accepted
    .map(({ messageId, end }) => ({ messageId, end, state: states.get(messageId) ?? 'unknown' }))
    .filter(({ end, state }) => state !== end)
    .map(({ messageId, state }) => `${messageId} is ${state} in the end.`)
}

interface Repeats {
  total: number
  /** By instance and the run that was killed after posting. */
  byKill: Map<string, number>
  /** Events that one run posted twice, although the receiver answers. */
  withinOneRun: string[]
}

function countRepeats(arrivals: readonly Arrival[]): Repeats {
  const repeats: Repeats = { total: 0, byKill: new Map(), withinOneRun: [] }
  const lastBoot = new Map<string, number>()
  for (const { eventId, instanceId, boot } of arrivals) {
    const before = lastBoot.get(eventId)
    lastBoot.set(eventId, boot)
    if (before === undefined) continue
    repeats.total += 1
    if (before === boot) repeats.withinOneRun.push(eventId)
    const kill = `${instanceId}, kill ${before}`
    repeats.byKill.set(kill, (repeats.byKill.get(kill) ?? 0) + 1)
  }
  return repeats
}

function onlyInFlightRepeated({ byKill, withinOneRun }: Repeats): string[] {
  return [
    ...[...byKill]
      .filter(([, count]) => count > IN_FLIGHT)
      .map(([kill, count]) => `${count} attempts were repeated for ${kill}.`),
    ...withinOneRun.map(eventId => `${eventId} was posted twice without a kill in between.`),
  ]
}

function groupBy<T>(items: Iterable<T>, keyOf: (item: T) => string): Map<string, T[]> {
  return Map.groupBy(items, keyOf)
}
