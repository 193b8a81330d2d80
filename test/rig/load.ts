import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError, type InstanceClient } from '../api-client.ts'
import type { Network } from '../network.ts'
import type { AcceptedText, IncomingText } from './facts.ts'
import type { Random } from './random.ts'

/** As much as one instance takes. */
const BUSY: Pace = { senders: 5, sendEveryMs: [0, 60], writeEveryMs: [100, 400] }
const REPEAT_AFTER_MS = 25
const KNOWN_CONTACTS = 4
/** Shares of the texts that go to a number never written to before, to the group, … */
const TO_NEW = 0.15
const TO_GROUP = 0.15
/** … and to one whose phone tells nothing: what was not acknowledged before a kill has to go out again. */
const TO_SILENT = 0.15
const SILENT = '15005550003'
/** … and to one that answers with the same text. */
const TO_ECHO = 0.1
const ECHO = '15005550005'

export interface Pace {
  /** Callers, each with one text at a time. */
  senders: number
  /** From a 202 to the caller's next text, at least and at most. */
  sendEveryMs: readonly [number, number]
  /** Between what contacts write. */
  writeEveryMs: readonly [number, number]
  /** While more events than this are owed to an instance, on average, nobody writes: the machine is slower than the pace. */
  mostOwed?: number
}

export interface LoadOptions {
  instance: InstanceClient
  /** The instance's own number. */
  phone: string
  /** Null: it cannot be reached but through the instance. */
  network: Network | null
  random: Random
  /** Default: as much as one instance takes. */
  pace?: Pace | undefined
  /** Error codes after which a caller tries again, beside 503. */
  passing?: readonly string[] | undefined
  /** Whether the service lags behind. */
  isBehind?(): boolean
  /** Told of every 202. */
  onAccepted(): void
}

/** A text with the key under which it is repeated until it has its 202. */
interface Offered extends AcceptedText {
  idempotencyKey: string
}

/** Texts sent through one instance, and contacts that write to it, until it is stopped. */
export class Load {
  readonly accepted: Offered[] = []
  readonly incoming: IncomingText[] = []
  /** Why it ended before it was stopped. */
  failure: unknown = null
  readonly #options: LoadOptions
  readonly #pace: Pace
  readonly #group: string
  readonly #member: string
  readonly #contacts: [string, ...string[]]
  readonly #work: Promise<void>
  #stopped = false
  #count = 0

  constructor(options: LoadOptions) {
    this.#options = options
    const { phone, random, pace = BUSY } = options
    this.#pace = pace
    // Phones of one instance are never another one's.
    const own = phone.slice(-6)
    this.#group = `120363${own}000042@g.us`
    this.#member = `5531${own}99`
    this.#contacts = [`5511${own}10`, ...Array.from({ length: KNOWN_CONTACTS - 1 }, (_, n) => `5511${own}1${n + 1}`)]
    const work = Array.from({ length: pace.senders }, () => this.#send(random.fork()))
    if (options.network) work.push(this.#write(options.network, random.fork()))
    this.#work = Promise.all(work).then(() => undefined)
    // Whoever stops the load, or looks, is told.
    this.#work.catch(error => {
      this.failure = error
    })
  }

  /** Resolves once everything offered is accepted. @throws whatever the service answered that it must not */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#work
  }

  /** Sends everything once more. @returns what was not answered with the first message's id */
  async replay(): Promise<string[]> {
    const wrong: string[] = []
    for (const { to, text, idempotencyKey, messageId } of this.accepted) {
      const { id, replayed } = await this.#options.instance.send(to, text, idempotencyKey)
      if (id !== messageId || !replayed) wrong.push(`${messageId} was accepted again as ${id}.`)
    }
    return wrong
  }

  async #send(random: Random): Promise<void> {
    const { network, phone, instance, onAccepted } = this.#options
    await network?.joinGroup(this.#group, [phone, this.#member])
    while (!this.#stopped) {
      const { to, phones, end } = this.#recipient(random)
      const text = `${instance.id} text ${++this.#count}`
      const idempotencyKey = randomUUID()
      const offeredAt = performance.now()
      const messageId = await this.#sendUntilAccepted(to, text, idempotencyKey)
      const offered = { instanceId: instance.id, to, text, idempotencyKey, offeredAt, acceptedAt: performance.now() }
      this.accepted.push({ ...offered, messageId, phones: network ? phones : [], end })
      if (to === ECHO) this.incoming.push({ instanceId: instance.id, text })
      onAccepted()
      await this.#pause(random.between(...this.#pace.sendEveryMs))
    }
  }

  async #sendUntilAccepted(to: string, text: string, idempotencyKey: string): Promise<string> {
    const { instance, passing = [] } = this.#options
    for (;;) {
      try {
        return (await instance.send(to, text, idempotencyKey)).id
      } catch (error) {
        // A broken connection, or 503: whether it was accepted is unknown, so the same again.
        if (error instanceof ApiError && error.status !== 503 && !passing.includes(error.code)) throw error
        await sleep(REPEAT_AFTER_MS)
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    do await sleep(ms)
    while (!this.#stopped && this.#options.isBehind?.())
  }

  #recipient(random: Random): Pick<Offered, 'to' | 'phones' | 'end'> {
    const share = random.next()
    if (share < TO_GROUP) return { to: this.#group, phones: [this.#member], end: 'read' }
    if (share < TO_GROUP + TO_SILENT) return { to: SILENT, phones: [SILENT], end: 'sent' }
    const to = this.#numberThatReads(share - TO_GROUP - TO_SILENT, random)
    return { to, phones: [to], end: 'read' }
  }

  #numberThatReads(share: number, random: Random): string {
    if (share < TO_ECHO) return ECHO
    if (share < TO_ECHO + TO_NEW) return `5521${this.#options.phone.slice(-4)}${String(this.#count).padStart(5, '0')}`
    return random.pick(this.#contacts)
  }

  async #write(network: Network, random: Random): Promise<void> {
    const { phone, instance } = this.#options
    for (let n = 1; !this.#stopped; n++) {
      const inGroup = random.next() < TO_GROUP
      const from = inGroup ? this.#member : random.pick(this.#contacts)
      const text = `${instance.id} incoming ${n}`
      await network.writeAs({ from, to: phone, text, ...(inGroup && { group: this.#group }) })
      this.incoming.push({ instanceId: instance.id, text })
      await this.#pause(random.between(...this.#pace.writeEveryMs))
    }
  }
}
