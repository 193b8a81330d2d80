import type { Logger } from 'pino'
import { type Repeated, repeat } from '../kit/repeat.ts'
import type { MediaRows } from '../store/media/media.ts'
import type { MediaStorage } from './storage/storage.ts'
import { nameOf } from './write-file.ts'

const ROUND_EVERY_MS = 60_000
const FIRST_ROUND_AFTER_MS = 5_000
const FILES_AT_ONCE = 20

interface CleaningOptions {
  rows: MediaRows
  storage: MediaStorage
  /** How long Pombal remembers why a file is gone. */
  keepGoneMs: number
  logger: Logger
  now: () => number
}

/**
 * Removes files from the storage: claim, remove, record. Any number of nodes can do it at once. If a file cannot be removed, it
 * is tried again a minute later. Call `wake` when there may be files to remove.
 */
export function startCleaning(options: CleaningOptions): Repeated {
  return repeat(stopping => clean(options, stopping), {
    firstAfterMs: FIRST_ROUND_AFTER_MS,
    everyMs: ROUND_EVERY_MS,
    onFailed: error => options.logger.warn({ err: error }, 'media.cleaning_failed'),
  })
}

/** One round: everything that is due now. */
export async function clean(
  { rows, storage, keepGoneMs, logger, now }: CleaningOptions,
  signal?: AbortSignal,
): Promise<void> {
  while (!signal?.aborted && (await rows.expire(now(), now() - keepGoneMs)) > 0);
  for (;;) {
    const doomed = signal?.aborted ? [] : await rows.claimDoomed(FILES_AT_ONCE)
    if (doomed.length === 0) return
    for (const file of doomed) {
      try {
        await storage.remove(nameOf(file))
        await rows.forget(file)
      } catch (error) {
        logger.warn({ ...file, err: error }, 'media.remove_failed')
      }
    }
  }
}
