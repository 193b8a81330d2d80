import { setTimeout as sleep } from 'node:timers/promises'
import type { AdminClient } from '../api-client.ts'
import type { Network } from '../network.ts'
import type { LinkedInstance } from '../rig/harness.ts'
import type { Random } from '../rig/random.ts'
import { retryOn503 } from './retry-on-503.ts'

/** A fault that has not occurred after this time is removed. */
const WAITS_MS = 10_000
/** How often the simulated person checks whether a replaced instance has stopped, and connects it again. */
const PERSON_LOOKS_EVERY_MS = [500, 3_000] as const
/** The share of receipts that are late, and their delay. */
const LATE_SHARE = 0.1
const LATE_BY_MS = { delayMs: 300, jitterMs: 4_000 }

const KINDS = [
  'socket cut',
  'cut before a message is seen',
  'cut after a message is seen',
  'cut instead of an acknowledgement',
  'stream error 503',
  'stream error 503, next login refused',
  'replaced',
] as const
export type FaultKind = (typeof KINDS)[number]

export interface FaultInjectorOptions {
  network: Network
  admin: AdminClient
  linkedInstances: readonly LinkedInstance[]
  random: Random
  /** The pause between two faults of any instances. */
  everyMs: readonly [number, number]
}

/**
 * Causes random faults between the service and WhatsApp, for one instance at a time, until it is stopped. Connects replaced
 * instances again until it is disposed of.
 */
export class FaultInjector {
  readonly counts = new Map<FaultKind, number>(KINDS.map(kind => [kind, 0]))
  readonly #options: FaultInjectorOptions
  /** A slow machine may report the replacement seconds after it happened, or never if the instance was not connected. */
  readonly #replaced = new Set<LinkedInstance>()
  readonly #disposed = new AbortController()
  #work: Promise<void> = Promise.resolve()
  #stopped = false

  constructor(options: FaultInjectorOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const { network, random } = this.#options
    await network.misbehave({ kind: 'seed', seed: random.integer(0, 2 ** 31) })
    await network.misbehave({
      kind: 'rule',
      rule: { when: { stanza: 'receipt', direction: 'out', probability: LATE_SHARE }, do: LATE_BY_MS },
    })
    this.#work = this.#run()
    // `stop` rejects with the error.
    this.#work.catch(() => undefined)
    // If this fails, the run fails in the end because an instance is not connected.
    this.#reconnectReplaced().catch(() => undefined)
  }

  get total(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Ends all faults. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#work
    await this.#options.network.misbehave({ kind: 'clear' })
  }

  [Symbol.dispose](): void {
    this.#disposed.abort()
  }

  async #run(): Promise<void> {
    const { random, linkedInstances, everyMs } = this.#options
    while (!this.#stopped) {
      await sleep(random.between(...everyMs))
      const kind = random.pick(KINDS)
      await this.#inject(kind, random.pick(linkedInstances as [LinkedInstance, ...LinkedInstance[]]))
      this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1)
    }
  }

  async #inject(kind: FaultKind, linkedInstance: LinkedInstance): Promise<void> {
    const { network } = this.#options
    const account = linkedInstance.phone
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
      case 'stream error 503, next login refused':
        await network.misbehave({ kind: 'refuse_logins', reason: '503', count: 1, account })
        return void (await network.misbehave({ kind: 'stream_error', account, code: '503' }))
      case 'stream error 503':
        return void (await network.misbehave({ kind: 'stream_error', account, code: '503' }))
      case 'replaced':
        await network.misbehave({ kind: 'stream_error', account, conflict: 'replaced' })
        return void this.#replaced.add(linkedInstance)
    }
  }

  /** A replaced instance stays stopped until somebody connects it again. */
  async #reconnectReplaced(): Promise<void> {
    const { admin, random } = this.#options
    const person = random.fork()
    for (;;) {
      await sleep(person.between(...PERSON_LOOKS_EVERY_MS), undefined, { signal: this.#disposed.signal })
      for (const linkedInstance of this.#replaced) {
        const { id } = linkedInstance.client
        if ((await retryOn503(() => admin.connection(id))).state !== 'stopped') continue
        await retryOn503(() => admin.connect(id))
        this.#replaced.delete(linkedInstance)
      }
    }
  }
}
