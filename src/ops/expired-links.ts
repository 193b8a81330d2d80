import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Connections } from '../store/connections/connections.ts'
import type { Handouts } from '../store/handouts/handouts.ts'

/** A code stays valid for at most this long after the end of its link. */
const ROUND_EVERY_MS = 10_000

/** Withdraws the codes of expired links, and erases answers with a passkey that nobody has read. Any number of nodes can run it at once. */
export function startEndingLinks(
  handouts: Pick<Handouts, 'endExpired'>,
  connections: Pick<Connections, 'eraseOldPasskeyAnswers'>,
  logger: Logger,
): { stop(): Promise<void> } {
  const stopping = new AbortController()

  async function rounds(): Promise<void> {
    while (!stopping.signal.aborted) {
      // Immediately at the start: a day after it expired, a link is erased, and its code could no longer be withdrawn.
      await handouts.endExpired().catch(error => {
        if (!stopping.signal.aborted) logger.warn({ err: error }, 'links.not_ended')
      })
      await connections.eraseOldPasskeyAnswers().catch(error => {
        if (!stopping.signal.aborted) logger.warn({ err: error }, 'passkeys.not_erased')
      })
      await sleep(ROUND_EVERY_MS, undefined, { signal: stopping.signal, ref: false })
    }
  }

  const ended = rounds().catch(() => undefined)
  return {
    async stop() {
      stopping.abort()
      await ended
    },
  }
}
