import type { InstanceId } from '../domain/ids.ts'

/**
 * Where to look: `queued` — the instance has messages to send; `owed` — it has deliveries that can start; `webhook` — its URL or
 * secret changed; `goal` — something else is asked of its connection, or it was made or deleted; `connection` — what is known of
 * its connection changed; `log` — its messages, events, deliveries or attempts changed; `free` — nobody holds its lease;
 * `asked` — something is asked of its simulated phone, or answered.
 */
export const HINT_TOPICS = ['queued', 'owed', 'webhook', 'goal', 'connection', 'log', 'free', 'asked'] as const
export type HintTopic = (typeof HINT_TOPICS)[number]

/** Whether this node committed what the hint is about, or another one. */
export type HintOrigin = 'here' | 'elsewhere'

/** @param about on `queued` from here: whom the message is to */
type Listener = (instanceId: InstanceId, origin: HintOrigin, about?: string) => void

/** A reason to look, given after a commit. It may be lost or come twice: a slow poll stands behind every listener. */
export interface Hints {
  /**
   * Whether other nodes write to the same rows: what they commit then may become visible later than a row that was
   * numbered after it, and their hint may come later than ours about that row.
   */
  readonly shared: boolean
  /**
   * @param of only hints about this instance; left out: about every one
   * @returns takes the listener off again
   */
  on(topic: HintTopic, listener: Listener, of?: InstanceId): () => void
}

const EVERY = ''

/** Hints within this process. A hint costs the same however many instances are listened to. */
export class LocalHints implements Hints {
  readonly shared: boolean = false
  readonly #listeners = new Map<HintTopic, Map<InstanceId | typeof EVERY, Set<Listener>>>()

  on(topic: HintTopic, listener: Listener, of: InstanceId = EVERY): () => void {
    const byInstance = this.#listeners.get(topic) ?? new Map<InstanceId, Set<Listener>>()
    const listeners = byInstance.get(of) ?? new Set()
    this.#listeners.set(topic, byInstance.set(of, listeners.add(listener)))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && byInstance.get(of) === listeners) byInstance.delete(of)
    }
  }

  give(topic: HintTopic, instanceId: InstanceId, about?: string): void {
    this.tell(topic, instanceId, 'here', about)
  }

  /** @returns whether somebody in this process listens to hints of just this instance: its owner, that is */
  protected tell(topic: HintTopic, instanceId: InstanceId, origin: HintOrigin, about?: string): boolean {
    const byInstance = this.#listeners.get(topic)
    const its = byInstance?.get(instanceId)
    const tellOne = (listener: Listener) => listener(instanceId, origin, about)
    its?.forEach(tellOne)
    byInstance?.get(EVERY)?.forEach(tellOne)
    return its !== undefined
  }

  async close(): Promise<void> {}
}

/** A message was accepted: it can be sent, and seen. */
export function giveAcceptedHints(hints: LocalHints, instanceId: InstanceId, to: string): void {
  hints.give('queued', instanceId, to)
  hints.give('log', instanceId)
}
