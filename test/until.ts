import { setTimeout as sleep } from 'node:timers/promises'
import { CONDITION_WITHIN_MS } from './deadlines.ts'

/** The pause between two polls grows, because polling slows a busy service. A state that lasts 0.5 s is still seen. */
const SHORTEST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 50
const PAUSE_PER_WAITED_MS = 0.05

/**
 * Polls `look` and resolves with its first value that is neither false, null nor undefined.
 * @throws Error that names `what`, after `withinMs`
 */
export async function until<T>(
  what: string,
  look: () => Promise<T | false | null | undefined> | T | false | null | undefined,
  withinMs = CONDITION_WITHIN_MS,
): Promise<T> {
  const startedAt = performance.now()
  for (;;) {
    const found = await look()
    if (found !== false && found !== null && found !== undefined) return found
    const waitedMs = performance.now() - startedAt
    if (waitedMs >= withinMs) throw new Error(`Waited ${withinMs} ms in vain for ${what}.`)
    await sleep(Math.min(Math.max(SHORTEST_PAUSE_MS, waitedMs * PAUSE_PER_WAITED_MS), LONGEST_PAUSE_MS))
  }
}
