import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError, type InstanceClient } from '../api-client.ts'
import type { Network } from '../network.ts'
import { Contacts, ECHO, type Writer } from './contacts.ts'
import type { AcceptedText, OfferedIncoming } from './facts.ts'
import type { NetworkFaults } from './network-faults.ts'
import type { Random } from './random.ts'
import { lengthen } from './texts.ts'

/** As fast as one instance accepts. */
export const BUSY: Pace = { senders: 5, sendEveryMs: [0, 60], writeEveryMs: [100, 400], maxPendingEvents: 150 }
const REPEAT_AFTER_MS = 25

export interface Pace {
  /** Callers, each with one text at a time. */
  senders: number
  /** The range of the pause from a 202 to the caller's next text. */
  sendEveryMs: readonly [number, number]
  /** The range of the pause between incoming texts. */
  writeEveryMs: readonly [number, number]
  /** While more events than this are pending per instance on average, the load pauses: the machine cannot keep up. */
  maxPendingEvents: number
}

export interface LoadOptions {
  instance: InstanceClient
  /** The instance's own number. */
  phone: string
  /** Null if the network is inside the service. */
  network: Network | null
  random: Random
  /** Null: each contact has one number, and all texts are short. */
  networkFaults: NetworkFaults | null
  /** Default: `BUSY`. */
  pace?: Pace | undefined
  /** Error codes after which a caller retries, besides 503. */
  retriedCodes?: readonly string[] | undefined
  /** Whether the service lags behind. */
  isBehind(): boolean
  /** Called after every 202. */
  onAccepted(): void
}

/** A text with its idempotency key. The call is repeated under that key until it gets 202. */
interface Offered extends AcceptedText {
  idempotencyKey: string
}

/** Sends texts through one instance and writes to it as its contacts, until it is stopped. */
export class Load {
  readonly accepted: Offered[] = []
  readonly incoming: OfferedIncoming[] = []
  /** Answers other than 202, after which the call was repeated. */
  readonly refusals: string[] = []
  /** The error that ended it early. */
  failure: unknown = null
  readonly #options: LoadOptions
  readonly #pace: Pace
  readonly #contacts: Contacts
  readonly #work: Promise<void>
  #stopped = false
  #count = 0

  constructor(options: LoadOptions) {
    this.#options = options
    const { phone, random, network, pace = BUSY } = options
    this.#pace = pace
    this.#contacts = new Contacts(phone, options.networkFaults)
    this.#work = this.#run(network, random)
    // `stop` rejects with the error, and `failure` holds it.
    this.#work.catch(error => {
      this.failure = error
    })
  }

  /** Resolves once every text is accepted. @throws the first unexpected response of the service */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#work
  }

  /** Repeats every call. @returns one sentence per response that is not a replay of the first one */
  async replay(): Promise<string[]> {
    const wrong: string[] = []
    for (const { to, text, idempotencyKey, messageId } of this.accepted) {
      const { id, replayed } = await this.#options.instance.send(to, text, idempotencyKey)
      if (id !== messageId || !replayed) wrong.push(`${messageId} was accepted again as ${id}.`)
    }
    return wrong
  }

  async #run(network: Network | null, random: Random): Promise<void> {
    const { group, members } = this.#contacts.groupMembers
    await network?.joinGroup(group, members)
    await this.#contacts.registerSpellings()
    const work = Array.from({ length: this.#pace.senders }, () => this.#send(random.fork()))
    if (network) work.push(this.#write(network, random.fork()))
    await Promise.all(work)
  }

  async #send(random: Random): Promise<void> {
    const { network, instance, onAccepted } = this.#options
    while (!this.#stopped) {
      const { phones, ...recipient } = this.#contacts.pickRecipient(random)
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
    const { instance, retriedCodes = [] } = this.#options
    for (;;) {
      try {
        return (await instance.send(to, text, idempotencyKey)).id
      } catch (error) {
        // After a broken connection or 503 the outcome is unknown, so the call is repeated.
        if (error instanceof ApiError && !isRetried(error, retriedCodes)) throw error
        if (error instanceof ApiError) this.refusals.push(String(error))
        await sleep(REPEAT_AFTER_MS)
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    do await sleep(ms)
    while (!this.#stopped && this.#options.isBehind())
  }

  async #write(network: Network, random: Random): Promise<void> {
    for (let n = 1; !this.#stopped; n++) {
      const writer = await this.#contacts.pickWriter(random)
      const line = `${this.#options.instance.id} incoming ${n}`
      const { networkFaults } = this.#options
      const text = networkFaults === null ? line : lengthen(line, random)
      const spoiled = networkFaults?.makesUndecryptable(random)
      await this.#writeAs(network, writer, text, spoiled && this.#keysKnown(writer))
      await this.#pause(random.between(...this.#pace.writeEveryMs))
    }
  }

  /** The first text to a group carries the key for later ones, so it must not be undecryptable. */
  #keysKnown({ from, group }: Writer): boolean {
    return group === undefined || this.incoming.some(text => text.from === from && text.group === group)
  }

  /** Writes a last text to the instance. WhatsApp delivers it after everything else that it kept for the instance. */
  async writeLast(network: Network, random: Random): Promise<void> {
    const { instance } = this.#options
    await this.#writeAs(network, await this.#contacts.pickWriter(random), `${instance.id} incoming at last`)
  }

  async #writeAs(network: Network, writer: Writer, text: string, undecryptable = false): Promise<void> {
    const { phone, instance } = this.#options
    const { id } = await network.writeAs({ ...writer, to: phone, text, ...(undecryptable && { undecryptable }) })
    this.incoming.push({ ...writer, instanceId: instance.id, text, whatsappId: id, undecryptable })
  }
}

function isRetried({ status, code, retryAfter }: ApiError, retriedCodes: readonly string[]): boolean {
  return (status === 503 && retryAfter !== null) || retriedCodes.includes(code)
}
