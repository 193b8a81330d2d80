import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError, type InstanceClient } from '../api-client.ts'
import type { Network } from '../network.ts'
import type { AcceptedText, OfferedIncoming } from './facts.ts'
import type { Hardship } from './hardship.ts'
import { ECHO, People, type Writer } from './people.ts'
import type { Random } from './random.ts'
import { lengthen } from './texts.ts'

/** As much as one instance takes. */
export const BUSY: Pace = { senders: 5, sendEveryMs: [0, 60], writeEveryMs: [100, 400] }
const REPEAT_AFTER_MS = 25

export interface Pace {
  /** Callers, each with one text at a time. */
  senders: number
  /** From a 202 to the caller's next text, at least and at most. */
  sendEveryMs: readonly [number, number]
  /** Between what contacts write. */
  writeEveryMs: readonly [number, number]
  /** While more events than this are undelivered to an instance, on average, nobody writes: the machine is slower than the pace. */
  mostUndelivered?: number
}

export interface LoadOptions {
  instance: InstanceClient
  /** The instance's own number. */
  phone: string
  /** Null: it cannot be reached but through the instance. */
  network: Network | null
  random: Random
  /** Null: everybody has one number, and nobody writes long texts. */
  hardship: Hardship | null
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
  readonly incoming: OfferedIncoming[] = []
  /** Why it ended before it was stopped. */
  failure: unknown = null
  readonly #options: LoadOptions
  readonly #pace: Pace
  readonly #people: People
  readonly #work: Promise<void>
  #stopped = false
  #count = 0

  constructor(options: LoadOptions) {
    this.#options = options
    const { phone, random, network, pace = BUSY } = options
    this.#pace = pace
    this.#people = new People(phone, options.hardship)
    this.#work = this.#run(network, random)
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

  async #run(network: Network | null, random: Random): Promise<void> {
    const { group, members } = this.#people.groupMembers
    await network?.joinGroup(group, members)
    await this.#people.settle()
    const work = Array.from({ length: this.#pace.senders }, () => this.#send(random.fork()))
    if (network) work.push(this.#write(network, random.fork()))
    await Promise.all(work)
  }

  async #send(random: Random): Promise<void> {
    const { network, instance, onAccepted } = this.#options
    while (!this.#stopped) {
      const { phones, ...recipient } = this.#people.pickRecipient(random)
      const text = `${instance.id} text ${++this.#count}`
      const idempotencyKey = randomUUID()
      const offeredAt = performance.now()
      const messageId = await this.#sendUntilAccepted(recipient.to, text, idempotencyKey)
      const offered = { instanceId: instance.id, text, idempotencyKey, offeredAt, acceptedAt: performance.now() }
      this.accepted.push({ ...offered, ...recipient, messageId, phones: network ? phones : [] })
      if (recipient.to === ECHO) this.incoming.push({ instanceId: instance.id, text, from: ECHO, undecryptable: false })
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

  async #write(network: Network, random: Random): Promise<void> {
    for (let n = 1; !this.#stopped; n++) {
      const writer = await this.#people.pickWriter(random)
      const line = `${this.#options.instance.id} incoming ${n}`
      const { hardship } = this.#options
      const text = hardship === null ? line : lengthen(line, random)
      const spoiled = hardship?.spoils(random)
      await this.#writeAs(network, writer, text, spoiled && this.#keysKnown(writer))
      await this.#pause(random.between(...this.#pace.writeEveryMs))
    }
  }

  /** The first text to a group brings the key of those after it: without it nobody could decrypt them either. */
  #keysKnown({ from, group }: Writer): boolean {
    return group === undefined || this.incoming.some(text => text.from === from && text.group === group)
  }

  /** A last text to the instance, behind everything that WhatsApp has kept for it. */
  async writeLast(network: Network, random: Random): Promise<void> {
    const { instance } = this.#options
    await this.#writeAs(network, await this.#people.pickWriter(random), `${instance.id} incoming at last`)
  }

  async #writeAs(network: Network, writer: Writer, text: string, undecryptable = false): Promise<void> {
    const { phone, instance } = this.#options
    const { id } = await network.writeAs({ ...writer, to: phone, text, ...(undecryptable && { undecryptable }) })
    this.incoming.push({ ...writer, instanceId: instance.id, text, whatsappId: id, undecryptable })
  }
}
