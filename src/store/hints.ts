import type { InstanceId } from '../domain/ids.ts'

/**
 * The kinds of changes of an instance:
 * - `queued`: it has messages to send
 * - `deliveries`: it has deliveries that can start
 * - `webhook`: its endpoints, a request to retry deliveries, or a delivery to an operator endpoint
 * - `goal`: the goal of its connection, or a passkey's answer; also published when the instance is created or deleted
 * - `connection`: the recorded facts about its connection
 * - `log`: its messages, files, events, deliveries or attempts
 * - `free`: its lease was released, or the instance was created
 * - `phone`: there is an order for its simulated phone, or an answer
 * - `plans`: a scheduled message or a command
 * - `numbers`: a number is to be looked up, or a look-up has ended
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
 * @param about for `queued`: the recipient of a message that is due, absent for commands and scheduled messages; for `deliveries`: the endpoint, if there is only one; for
 * `numbers`: `settled` if a look-up has ended; for `typing`: the seconds and the chat. Absent with origin `elsewhere`,
 * except for `typing`
 */
type Listener = (instanceId: InstanceId, origin: HintOrigin, about?: string) => void

/** Notifications after a commit. A hint may be lost or repeated, so every listener also polls slowly, except that of `typing`. */
export interface Hints {
  /**
   * Whether other nodes write to the same tables. Their rows may then become visible after rows with a higher number,
   * and their hints may arrive late.
   */
  readonly shared: boolean
  /**
   * @param of only hints about this instance; by default, hints about all instances
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

  /**
   * @returns whether this process has a listener for just this instance. It is then the owner, if only owners listen to
   * the topic.
   */
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
