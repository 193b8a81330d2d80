import { setTimeout as sleep } from 'node:timers/promises'
import type { AdminClient } from '../api-client.ts'
import type { Network } from '../network.ts'
import type { Random } from '../rig/random.ts'
import type { Player } from '../rig/stage.ts'
import { patiently } from './patiently.ts'

/** A fault that is ordered and not used for so long is forgotten. */
const WAITS_MS = 10_000
/** How long a person takes to connect an instance again that was opened elsewhere. */
const NOTICED_AFTER_MS = [500, 3_000] as const
/** Of the receipts, this share is late, by so long. */
const LATE_SHARE = 0.1
const LATE_BY_MS = { delayMs: 300, jitterMs: 4_000 }

const KINDS = [
  'socket cut',
  'cut before a message is seen',
  'cut after a message is seen',
  'cut instead of an acknowledgement',
  'answered 503',
  'answered 503 and refused once',
  'replaced',
] as const
export type TroubleKind = (typeof KINDS)[number]

export interface TroubleOptions {
  network: Network
  admin: AdminClient
  players: readonly Player[]
  random: Random
  /** Between two faults, whichever instance they befall. */
  everyMs: readonly [number, number]
}

/** What goes wrong between the service and WhatsApp: one instance after the other, until it is stopped. */
export class Trouble {
  readonly counts = new Map<TroubleKind, number>(KINDS.map(kind => [kind, 0]))
  readonly #options: TroubleOptions
  readonly #people = new Set<Promise<void>>()
  #work: Promise<void> = Promise.resolve()
  #stopped = false

  constructor(options: TroubleOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const { network, random } = this.#options
    await network.misbehave({ kind: 'seed', seed: random.integer(0, 2 ** 31) })
    await network.misbehave({
      kind: 'rule',
      rule: { when: { stanza: 'receipt', direction: 'out', probability: LATE_SHARE }, do: LATE_BY_MS },
    })
    this.#work = this.#goOn()
    // Whoever stops it is told.
    this.#work.catch(() => undefined)
  }

  get total(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Resolves once WhatsApp behaves well, and whoever had to connect an instance again has done so. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#work
    await this.#options.network.misbehave({ kind: 'clear' })
    await Promise.all(this.#people)
  }

  async #goOn(): Promise<void> {
    const { random, players, everyMs } = this.#options
    while (!this.#stopped) {
      await sleep(random.between(...everyMs))
      const kind = random.pick(KINDS)
      await this.#cause(kind, random.pick(players as [Player, ...Player[]]))
      this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1)
    }
  }

  async #cause(kind: TroubleKind, player: Player): Promise<void> {
    const { network } = this.#options
    const account = player.phone
    const once = (
      stanza: string,
      direction: 'in' | 'out',
      action: 'cut' | 'cut_after',
      attrs?: Record<string, string>,
    ) =>
      network.misbehave({
        kind: 'rule',
        rule: { when: { stanza, direction, account, times: 1, ...(attrs && { attrs }) }, do: action, forMs: WAITS_MS },
      })
    switch (kind) {
      case 'socket cut':
        return void (await network.misbehave({ kind: 'cut', account }))
      case 'cut before a message is seen':
        return void (await once('message', 'in', 'cut'))
      case 'cut after a message is seen':
        return void (await once('message', 'in', 'cut_after'))
      case 'cut instead of an acknowledgement':
        return void (await once('ack', 'out', 'cut', { class: 'message' }))
      case 'answered 503 and refused once':
        await network.misbehave({ kind: 'refuse_logins', reason: '503', count: 1, account })
        return void (await network.misbehave({ kind: 'stream_error', account, code: '503' }))
      case 'answered 503':
        return void (await network.misbehave({ kind: 'stream_error', account, code: '503' }))
      case 'replaced':
        await network.misbehave({ kind: 'stream_error', account, conflict: 'replaced' })
        return this.#noticedBySomebody(player)
    }
  }

  /** What was opened elsewhere stays stopped until a person connects it again. */
  #noticedBySomebody({ client }: Player): void {
    const { admin, random } = this.#options
    const noticedAfterMs = random.between(...NOTICED_AFTER_MS)
    const person = sleep(noticedAfterMs)
      .then(() => patiently(() => admin.connect(client.id)))
      .then(() => undefined)
    person.finally(() => this.#people.delete(person)).catch(() => undefined)
    this.#people.add(person)
  }
}
