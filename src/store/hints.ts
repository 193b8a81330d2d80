import type { InstanceId } from '../domain/ids.ts'

/**
 * The kinds of changes of an instance:
 * - `queued`: it has messages to send
 * - `deliveries`: it has deliveries that can start
 * - `webhook`: its endpoints, or a request to retry deliveries
 * - `goal`: the goal of its connection; also published when the instance is created or deleted
 * - `connection`: the recorded facts about its connection
 * - `log`: its messages, events, deliveries or attempts
 * - `free`: its lease was released
 * - `phone`: there is an order for its simulated phone, or an answer
 * - `plans`: a scheduled message or a command
 * - `numbers`: a number is to be looked up, or was
 * - `files`: a file of a message is to be fetched from a URL, or the attempt has ended
 * - `pace`: how slowly it sends
 * - `typing`: a request to show in a chat that the owner is typing; the only hint without a row
 * - `access`: its token was replaced, a key was revoked, or it was deleted
 */
export const HINT_TOPICS = [
  'queued',
  'deliveries',
  'webhook',
  'goal',
  'connection',
  'log',
  'free',
  'phone',
  'plans',
  'numbers',
  'files',
  'pace',
  'typing',
  'access',
] as const
export type HintTopic = (typeof HINT_TOPICS)[number]

/** Whether this node or another one committed the change. */
type HintOrigin = 'here' | 'elsewhere'

/**
 * @param about with origin `here`. For `queued`: the message's recipient. For `deliveries`: the endpoint, if it is only one.
 * For `typing`, whatever its origin: the seconds and the chat
 */
type Listener = (instanceId: InstanceId, origin: HintOrigin, about?: string) => void

/** Notifications after a commit. A hint may be lost or repeated, so every listener also polls slowly. */
export interface Hints {
  /**
   * Whether other nodes write to the same tables. Their rows may then become visible after rows with a higher number,
   * and their hints may arrive late.
   */
  readonly shared: boolean
  /**
   * @param of only hints about this instance; by default hints about all of them
   * @returns a function that removes the listener
   */
  on(topic: HintTopic, listener: Listener, of?: InstanceId): () => void
}

const EVERY = ''

/** Hints within this process. The cost of a hint does not depend on the number of instances with listeners. */
export class LocalHints implements Hints {
  readonly shared: boolean
  readonly #listeners = new Map<HintTopic, Map<InstanceId | typeof EVERY, Set<Listener>>>()

  constructor(shared = false) {
    this.shared = shared
  }

  on(topic: HintTopic, listener: Listener, of: InstanceId = EVERY): () => void {
    const byInstance = this.#listeners.get(topic) ?? new Map<InstanceId, Set<Listener>>()
    const listeners = byInstance.get(of) ?? new Set()
    this.#listeners.set(topic, byInstance.set(of, listeners.add(listener)))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && byInstance.get(of) === listeners) byInstance.delete(of)
    }
  }

  /** @returns whether this process has a listener for just this instance, which means that it owns it */
  publish(topic: HintTopic, instanceId: InstanceId, about?: string, origin: HintOrigin = 'here'): boolean {
    const byInstance = this.#listeners.get(topic)
    const its = byInstance?.get(instanceId)
    for (const listeners of [its, byInstance?.get(EVERY)]) {
      for (const listener of listeners ?? []) listener(instanceId, origin, about)
    }
    return its !== undefined
  }

  async close(): Promise<void> {}
}
