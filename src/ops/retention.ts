import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type Repeated, repeat } from '../kit/repeat.ts'
import type { Retention } from '../store/retention/retention.ts'

const ROUND_EVERY_MS = 10 * 60_000
/** Late enough not to slow down the start, early enough for a process that restarts often. */
const FIRST_ROUND_AFTER_MS = 5_000
/** The pause between two steps, in which other writes proceed. */
const STEP_EVERY_MS = 50

interface RetentionOptions {
  retention: Retention
  retentionMs: number
  logger: Logger
  now?: () => number
}

/** Erases rows older than the retention time, in small steps. Any number of nodes can run it at once. */
export function startRetention({ retention, retentionMs, logger, now = Date.now }: RetentionOptions): Repeated {
  async function round(stopping: AbortSignal): Promise<void> {
    const startedAt = performance.now()
    let rows = 0
    for (;;) {
      const erased = await retention.step(now() - retentionMs, now(), stopping)
      rows += erased
      if (erased === 0 || stopping.aborted) break
      await sleep(STEP_EVERY_MS, undefined, { signal: stopping })
    }
    if (rows > 0) logger.info({ rows, durationMs: Math.round(performance.now() - startedAt) }, 'retention.erased')
  }

  return repeat(round, {
    firstAfterMs: FIRST_ROUND_AFTER_MS,
    everyMs: ROUND_EVERY_MS,
    onFailed: error => logger.warn({ err: error }, 'retention.failed'),
  })
}
