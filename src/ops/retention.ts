import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type Repeated, repeat } from '../kit/repeat.ts'
import type { Retention } from '../store/retention/retention.ts'

const ROUND_EVERY_MS = 10 * 60_000
/** Late enough not to slow down the start, early enough for a process that restarts often. */
const FIRST_ROUND_AFTER_MS = 5_000
/** The pause between two steps, in which other writes proceed. */
const STEP_EVERY_MS = 50
/** A clock that is set forward by more than this may be wrong. Then nothing is erased for a while. */
const JUMP_MS = 24 * 60 * 60_000
const WAIT_AFTER_JUMP_MS = 60 * 60_000

interface RetentionOptions {
  retention: Retention
  retentionMs: number
  logger: Logger
  now?: () => number
}

/**
 * Erases rows older than the retention time, in small steps. Any number of nodes can run it at once. If the clock is set
 * forward by more than a day while this process runs, it waits an hour, in which the clock can be corrected.
 */
export function startRetention({ retention, retentionMs, logger, now = Date.now }: RetentionOptions): Repeated {
  let offset: number | null = null
  let waitsUntil = 0

  async function round(stopping: AbortSignal): Promise<void> {
    const startedAt = performance.now()
    const time = now()
    const jumpMs = time - startedAt - (offset ?? time - startedAt)
    offset = time - startedAt
    if (jumpMs > JUMP_MS) {
      waitsUntil = startedAt + WAIT_AFTER_JUMP_MS
      logger.warn({ jumpMs: Math.round(jumpMs), waitMs: WAIT_AFTER_JUMP_MS }, 'retention.clock_jumped')
    }
    if (startedAt < waitsUntil) return
    let rows = 0
    for (;;) {
      const erased = await retention.step(time - retentionMs, time, stopping)
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
