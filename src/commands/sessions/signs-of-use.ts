import type { FoundSession } from './read-folder.ts'
import { ago } from './table.ts'

/** A program that wrote within this time may still be running. A program without traffic may not write for hours. */
const RECENT_MS = 60_000

export interface SignOfUse {
  /** In the column "Still running there?". */
  shown: string
  /** The beginning of the refusal. */
  reason: string
}

/** Why the other program may still be running. Null if there is no sign of that, which does not prove a stop. */
export function signOfUse({ writtenAt, otherClients }: FoundSession, now: number): SignOfUse | null {
  if (writtenAt !== null && now - writtenAt < RECENT_MS)
    return { shown: 'maybe: written just now', reason: `It was written ${ago(now - writtenAt)}` }
  if (otherClients === null || otherClients === 0) return null
  const clients = `${otherClients} other client${otherClients === 1 ? '' : 's'}`
  return { shown: `maybe: its database has ${clients}`, reason: `Its database has ${clients}` }
}
