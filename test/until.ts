import { setTimeout as sleep } from 'node:timers/promises'
import { CONDITION_WITHIN_MS } from './deadlines.ts'

const POLL_EVERY_MS = 20

/**
 * Polls `look` and resolves with its first value that is neither false, null nor undefined.
 * @throws Error that names `what`, after `withinMs`
 */
export async function until<T>(
  what: string,
  look: () => Promise<T | false | null | undefined> | T | false | null | undefined,
  withinMs = CONDITION_WITHIN_MS,
): Promise<T> {
  const giveUpAt = performance.now() + withinMs
  for (;;) {
    const found = await look()
    if (found !== false && found !== null && found !== undefined) return found
    if (performance.now() >= giveUpAt) throw new Error(`Waited ${withinMs} ms in vain for ${what}.`)
    await sleep(POLL_EVERY_MS)
  }
}
