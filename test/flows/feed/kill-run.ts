import { setTimeout as sleep } from 'node:timers/promises'
import { parseCursor } from '../../../src/domain/events/feed-place.ts'
import type { TestDatabase } from '../../databases/database.ts'
import { Random } from '../../rig/random.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'
import { FeedReader, type ReaderKind } from './feed-reader.ts'

/** Events of a text to a number of the sandbox: sent, delivered, read. */
const EVENTS_PER_TEXT = 3
const KINDS = ['message.sent', 'message.delivered', 'message.read'] as const
const RECIPIENTS = 40
/** The number of callers, each of which sends one text at a time. */
const SENDERS = 4
/** With more unsent texts, a slow machine would not catch up between two kills. */
const MAX_PENDING_TEXTS = 200
const READERS: readonly ReaderKind[] = ['stream', 'poll']
const AGAIN_MS = 100
const FINISHED_WITHIN_MS = 600_000

export interface FeedRunOptions {
  database: TestDatabase
  /** The minimum number of message events. */
  events: number
  /** Kills of a node. */
  kills: number
  seed: number
  say(line: string): void
}

export interface FeedReport {
  events: number
  kills: number
  /** How many of the readers' connections were cut or ended. */
  disconnects: number
  durationMs: number
  violations: string[]
}

/**
 * Sends texts through a sandbox instance, on one node with SQLite and three with PostgreSQL, and kills nodes and readers
 * meanwhile. Then compares what each reader saw with the messages.
 */
export async function runFeed({ database, events, kills, seed, say }: FeedRunOptions): Promise<FeedReport> {
  const startedAt = performance.now()
  const random = new Random(seed)
  const texts = Math.ceil(events / EVENTS_PER_TEXT)
  const env = { ...database.env, LOG_LEVEL: 'info' }
  const nodes = Array.from({ length: database.url === null ? 1 : 3 }, () => new Service({ env }))
  const pickNode = () => nodes[random.integer(0, nodes.length - 1)]!
  const readers: FeedReader[] = []
  try {
    await Promise.all(nodes.map(node => node.start()))
    const { id, token } = await nodes[0]!.admin.createConnected()
    for (const kind of READERS)
      readers.push(new FeedReader(kind, { token, random: random.fork(), url: () => pickNode().url }))
    const running = readers.map(reader => reader.run())
    const accepted = new Set<string>()
    const readCount = () => Math.min(...readers.map(reader => reader.countOf('message.read')))

    async function send(sender: number): Promise<void> {
      for (let text = sender; text < texts; text += SENDERS) {
        await until('the texts to be sent', () => accepted.size - readCount() < MAX_PENDING_TEXTS, FINISHED_WITHIN_MS)
        const to = `55119${String(80_000_000 + (text % RECIPIENTS))}`
        accepted.add(
          await untilAccepted(() => pickNode().instance(id, token), { to, text: `${text}`, key: `text-${text}` }),
        )
      }
    }

    async function kill(): Promise<void> {
      for (let count = 1; count <= kills; count += 1) {
        const share = (texts * count) / (kills + 1)
        await until('the next kill', () => accepted.size >= share, FINISHED_WITHIN_MS)
        const node = pickNode()
        await node.kill('SIGKILL')
        say(`kill ${count} of ${kills}, after ${accepted.size} texts`)
        await node.start()
      }
    }

    await Promise.all([kill(), ...Array.from({ length: SENDERS }, (_, sender) => send(sender))])
    await until('the last event', () => readCount() >= texts, FINISHED_WITHIN_MS)
    for (const reader of readers) reader.stop()
    await Promise.all(running)
    return {
      events: readers[0]!.items.length,
      kills,
      disconnects: readers.reduce((sum, reader) => sum + reader.disconnects, 0),
      durationMs: performance.now() - startedAt,
      violations: judge(readers, accepted),
    }
  } finally {
    for (const reader of readers) reader.stop()
    await Promise.all(nodes.map(node => node.dispose()))
  }
}

async function untilAccepted(
  client: () => ReturnType<Service['instance']>,
  { to, text, key }: { to: string; text: string; key: string },
): Promise<string> {
  for (;;) {
    try {
      return (await client().send(to, text, key)).id
    } catch {
      // The node is down, or the instance is not connected at the moment.
      await sleep(AGAIN_MS)
    }
  }
}

/** The violations in the events that the readers got. */
function judge(readers: readonly FeedReader[], accepted: ReadonlySet<string>): string[] {
  const violations: string[] = []
  for (const { kind, items } of readers) {
    const seen = new Set<string>()
    let last = 0
    const byMessage = new Map<string, string[]>()
    for (const { id, cursor, body } of items) {
      if (seen.has(id)) violations.push(`The ${kind} reader saw ${id} twice.`)
      seen.add(id)
      const { seq } = parseCursor(cursor)!
      if (seq <= last) violations.push(`The ${kind} reader saw ${id} (${cursor}) after ${last}.`)
      last = seq
      const message = String(body.data['id'])
      if (body.event.startsWith('message.')) byMessage.set(message, [...(byMessage.get(message) ?? []), body.event])
    }
    for (const message of accepted) {
      const kinds = byMessage.get(message)?.join(', ') ?? 'nothing'
      if (kinds !== KINDS.join(', ')) violations.push(`The ${kind} reader saw of ${message}: ${kinds}.`)
    }
  }
  const [one, other] = readers.map(({ items }) => items.map(({ id }) => id).join())
  if (one !== other) violations.push('The readers did not see the same events in the same order.')
  return violations
}
