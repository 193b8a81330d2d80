import type { Logger } from 'pino'
import { repeat } from '../kit/repeat.ts'
import type { Connections } from '../store/connections/connections.ts'
import type { Handouts } from '../store/handouts/handouts.ts'

/** A code stays valid for at most this long after the end of its link. */
const ROUND_EVERY_MS = 10_000

/** Withdraws the codes of expired links, and erases old passkey answers. Any number of nodes can run it at once. */
export function startEndingLinks(
  handouts: Pick<Handouts, 'endExpired'>,
  connections: Pick<Connections, 'eraseOldPasskeyAnswers'>,
  logger: Logger,
): { stop(): Promise<unknown> } {
  // The first round is immediate: a link is erased a day after it expires, and its code cannot be withdrawn any more.
  const tasks = [
    repeat(() => handouts.endExpired(), {
      everyMs: ROUND_EVERY_MS,
      onFailed: error => logger.warn({ err: error }, 'links.not_ended'),
    }),
    repeat(() => connections.eraseOldPasskeyAnswers(), {
      everyMs: ROUND_EVERY_MS,
      onFailed: error => logger.warn({ err: error }, 'passkeys.not_erased'),
    }),
  ]
  return { stop: () => Promise.all(tasks.map(task => task.stop())) }
}
