import type { InstanceId } from '../domain/ids.ts'

/**
 * Where to look: `queued` — the instance has messages to send; `owed` — it has deliveries that can start; `webhook` — its URL or
 * secret changed; `goal` — something else is asked of its connection, or it was made or deleted; `connection` — what is known of
 * its connection changed; `log` — its messages, events, deliveries or attempts changed.
 */
export type HintTopic = 'queued' | 'owed' | 'webhook' | 'goal' | 'connection' | 'log'

type Listener = (instanceId: InstanceId) => void

/** A reason to look, given after a commit. It may be lost or come twice: a slow poll stands behind every listener. */
export interface Hints {
  /** @returns takes the listener off again */
  on(topic: HintTopic, listener: Listener): () => void
}

/** Hints within this process. */
export class LocalHints implements Hints {
  readonly #listeners = new Map<HintTopic, Set<Listener>>()

  on(topic: HintTopic, listener: Listener): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set()
    this.#listeners.set(topic, listeners.add(listener))
    return () => listeners.delete(listener)
  }

  give(topic: HintTopic, instanceId: InstanceId): void {
    for (const listener of this.#listeners.get(topic) ?? []) listener(instanceId)
  }
}
