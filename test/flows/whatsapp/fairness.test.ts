import { expect, test } from 'vitest'
import type { StoreKind } from '../../databases/database.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { eventOf, type ReceivedEvent } from '../../receiver.ts'
import type { LogLine } from '../../service.ts'
import { until } from '../../until.ts'

/**
 * A busy instance has as much work as it can do, and another one shares its thread. The tests measure how much of that work is
 * done while a text or an incoming message is on its way, because the time depends on the machine. Without turns, it would be all.
 */

const CONTACT = '5511987650001'
const HOSTILE = '5511987654321'
/** Contacts of the busy instance. Few, because the simulated network creates keys for each. */
const CONTACTS = Array.from({ length: 30 }, (_, n) => `55119${70_000_000 + n}`)
const BACKLOG = 600
const AT_ONCE = 150
const FLOOD = 600
const UNDECRYPTABLE = 200
const REQUESTS_EACH = 5
const TURNS = 5
/** The share of the work that may be done while one message is under way. */
const SHARE = 1 / 4

/** A text or an incoming message, and the line of the log when it is sent or recorded. */
interface UnderWay {
  what: string
  begunAt: number
  line: Record<string, string>
}

const timeOf = (line: LogLine) => Number(line['time'])

class Fairness implements AsyncDisposable {
  readonly harness: LinkedHarness
  readonly busy: LinkedNumber
  readonly other: LinkedNumber
  readonly underWay: UnderWay[] = []

  private constructor(harness: LinkedHarness, busy: LinkedNumber, other: LinkedNumber) {
    this.harness = harness
    this.busy = busy
    this.other = other
  }

  static async open(store: StoreKind): Promise<Fairness> {
    const harness = await LinkedHarness.open(store, { env: { WHATSAPP_THREADS: '1', LOG_LEVEL: 'info' } })
    const fairness = new Fairness(harness, await harness.link(), await harness.link())
    // First messages cost more, because keys are exchanged.
    for (const one of [fairness.busy, fairness.other]) {
      await fairness.send('first', one)
      for (const from of [CONTACT, HOSTILE]) await fairness.write('first', one, from)
    }
    await Promise.all(CONTACTS.map(to => fairness.busy.instance.send(to, 'first')))
    await fairness.sentBy(fairness.busy, CONTACTS.length + 1)
    fairness.underWay.length = 0
    return fairness
  }

  events({ id }: LinkedNumber, kind: string): ReceivedEvent[] {
    return this.harness.receiver.events.filter(({ instanceId, event }) => instanceId === id && event === kind)
  }

  sentBy(one: LinkedNumber, count: number): Promise<unknown> {
    return until('the texts', () => this.events(one, 'message.sent').length >= count, LONG_TEST_WITHIN_MS)
  }

  receivedBy(one: LinkedNumber, count: number): Promise<unknown> {
    return until('the messages', () => this.events(one, 'message.received').length >= count, LONG_TEST_WITHIN_MS)
  }

  /** Sends a text as a caller, and waits until the receiver knows that it was sent. */
  async send(what: string, by: LinkedNumber): Promise<void> {
    const begunAt = Date.now()
    const { id } = await by.instance.send(CONTACT, what)
    const isSent = () => this.events(by, 'message.sent').some(({ data }) => data.id === id)
    await until(`"${what}" to be sent`, isSent, LONG_TEST_WITHIN_MS)
    this.underWay.push({ what, begunAt, line: { msg: 'message.sent', messageId: id } })
  }

  /** Writes a text as a contact, and waits until the receiver has its event. */
  async write(what: string, to: LinkedNumber, from = CONTACT): Promise<void> {
    const begunAt = Date.now()
    const { id } = await this.harness.network.writeAs({ from, to: to.phone, text: what })
    const isReceived = () => this.events(to, 'message.received').some(({ data }) => data.id === id)
    await until(`"${what}" to be received`, isReceived, LONG_TEST_WITHIN_MS)
    this.underWay.push({ what, begunAt, line: { msg: 'message.received', whatsappId: id } })
  }

  /** Expects that little of the busy instance's work was done while each message was under way. */
  async expectTurns(work: 'message.sent' | 'message.received', total: number): Promise<void> {
    // A log line of a thread may arrive after the webhook.
    const [lines, ends] = await until('the lines of the log', () => {
      const lines = this.harness.service.logLines
      const ends = this.underWay.map(({ line }) => {
        return lines.find(one => Object.entries(line).every(([field, value]) => one[field] === value))
      })
      return ends.every(end => end !== undefined) && ([lines, ends] as const)
    })
    const done = lines.filter(line => line.msg === work && line['instanceId'] === this.busy.id).map(timeOf)
    for (const [index, { what, begunAt }] of this.underWay.entries()) {
      const end = timeOf(ends[index]!)
      const meanwhile = done.filter(time => time >= begunAt && time <= end).length
      console.log(`${what}: ${meanwhile} of ${total} in ${end - begunAt} ms`)
      expect(meanwhile, what).toBeLessThan(total * SHARE)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.harness[Symbol.asyncDispose]()
  }
}

test.each(ONE_STORE)(
  'on %s, an instance with a backlog leaves the others of its thread their turn, and its incoming messages and receipts do not wait for it',
  async store => {
    await using fairness = await Fairness.open(store)
    const { busy, other } = fairness
    const texts = Array.from({ length: BACKLOG }, (_, n) => CONTACTS[n % CONTACTS.length]!)
    // Fewer than an instance may have open at once.
    for (let from = 0; from < BACKLOG; from += AT_ONCE) {
      const next = texts.slice(from, from + AT_ONCE)
      await Promise.all(next.map(to => busy.instance.send(to, 'backlog')))
    }
    for (let turn = 0; turn < TURNS; turn++) {
      await fairness.send('a text of the other instance', other)
      await fairness.write('a message to the other instance', other)
      await fairness.write('a message to the busy instance', busy)
    }
    const count = CONTACTS.length + 1 + BACKLOG
    await fairness.sentBy(busy, count)
    await fairness.expectTurns('message.sent', BACKLOG)

    // Their webhooks arrive in the order of their recording.
    let sent = 0
    const sentAs = new Map<string, number>()
    const between: number[] = []
    await until('the receipts', () => fairness.events(busy, 'message.delivered').length >= count, LONG_TEST_WITHIN_MS)
    for (const { instanceId, event, data } of fairness.harness.receiver.requests.map(eventOf)) {
      if (instanceId !== busy.id) continue
      if (event === 'message.sent') sentAs.set(data.id, ++sent)
      if (event === 'message.delivered') between.push(sent - sentAs.get(data.id)!)
    }
    const median = between.toSorted((a, b) => a - b)[between.length >> 1]!
    console.log(`a receipt of the busy instance: ${median} of ${BACKLOG}, at most ${Math.max(...between)}`)
    expect(median).toBeLessThan(BACKLOG * SHARE)
  },
  LONG_TEST_WITHIN_MS,
)

test.each(ONE_STORE)(
  'on %s, an instance that is flooded with messages leaves the others of its thread their turn',
  async store => {
    await using fairness = await Fairness.open(store)
    const { busy, other, harness } = fairness
    await harness.network.misbehave({ kind: 'write', from: HOSTILE, to: busy.phone, text: 'x', count: FLOOD })
    for (let turn = 0; turn < TURNS; turn++) {
      await fairness.send('a text of the other instance', other)
      await fairness.write('a message to the other instance', other)
    }
    await fairness.receivedBy(busy, FLOOD)
    await fairness.expectTurns('message.received', FLOOD)
  },
  LONG_TEST_WITHIN_MS,
)

test.each(ONE_STORE)(
  'on %s, 200 messages of one contact that cannot be decrypted leave the other instances of the thread their turn',
  async store => {
    await using fairness = await Fairness.open(store)
    const { busy, other, harness } = fairness
    const { misbehave, scenario } = harness.network
    const garbled = { stanza: 'message', direction: 'out', contact: HOSTILE } as const
    await misbehave({ kind: 'rule', rule: { when: garbled, do: 'garble' } })
    const request = { stanza: 'receipt', direction: 'in', attrs: { type: 'retry' } } as const
    const { rule } = await misbehave({ kind: 'rule', rule: { when: request, do: { delayMs: 0 } } })
    const requested = async () => (await scenario()).rules.find(({ id }) => id === rule)!.applied
    await misbehave({ kind: 'write', from: HOSTILE, to: busy.phone, text: 'x', count: UNDECRYPTABLE })
    const total = UNDECRYPTABLE * REQUESTS_EACH
    for (const act of [
      () => fairness.send('a text of the other instance', other),
      () => fairness.write('a message to the other instance', other),
    ]) {
      const before = await requested()
      await act()
      const meanwhile = (await requested()) - before
      console.log(`beside undecryptable messages: ${meanwhile} of ${total}`)
      expect(meanwhile).toBeLessThan(total * SHARE)
    }
    // On a slow machine the phone sends copies of some messages before all requests. Pombal then requests them no more.
    const copied = () =>
      fairness.events(busy, 'message.received').filter(({ data }) => String(data.text).startsWith('x')).length
    const enough = async () => (await requested()) >= total - REQUESTS_EACH * copied()
    await until('all requests', enough, LONG_TEST_WITHIN_MS)
  },
  LONG_TEST_WITHIN_MS,
)
