import type { InstanceId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Hints } from '../../../store/hints.ts'
import type { MediaApi } from '../../context.ts'

/** Backs up the hints, which may be lost. */
const POLL_EVERY_MS = 1_000
/** A busy instance has many hints. */
const AT_MOST_EVERY_MS = 100

export interface Wait {
  hints: Hints
  waitMs: number
  /** Aborted when the caller has left. */
  gone: AbortSignal
}

/** Opens a medium. If it is still being fetched from WhatsApp, waits for it. @throws Refusal `media_pending` after the time */
export async function openWhenThere(
  media: Pick<MediaApi, 'open'>,
  instanceId: InstanceId,
  id: string,
  { hints, waitMs, gone }: Wait,
): ReturnType<MediaApi['open']> {
  const until = performance.now() + waitMs
  const ended = new AbortController()
  const closed = AbortSignal.any([gone, ended.signal])
  // The key of the caller may have been revoked.
  using _ = { [Symbol.dispose]: hints.on('access', () => ended.abort(), instanceId) }
  for (;;) {
    try {
      return await media.open(instanceId, id)
    } catch (error) {
      const leftMs = until - performance.now()
      const isPending = error instanceof Refusal && error.code === 'media_pending'
      if (!isPending || leftMs <= 0 || closed.aborted) throw error
      await nextChange(hints, instanceId, Math.min(leftMs, POLL_EVERY_MS), closed)
    }
  }
}

async function nextChange(hints: Hints, instanceId: InstanceId, limitMs: number, closed: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let soon: NodeJS.Timeout | undefined
  const wake = () => {
    soon ??= setTimeout(resolve, AT_MOST_EVERY_MS)
  }
  const off = hints.on('log', wake, instanceId)
  const timer = setTimeout(resolve, limitMs)
  closed.addEventListener('abort', () => resolve(), { once: true })
  await promise
  off()
  clearTimeout(timer)
  clearTimeout(soon)
}
