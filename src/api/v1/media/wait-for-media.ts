import type { InstanceId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Hints } from '../../../store/hints.ts'
import type { MediaApi } from '../../context.ts'

/** Polls at this interval, because hints may be lost. */
const POLL_EVERY_MS = 1_000
/** The pause between a hint and the next read, because a busy instance causes many hints. */
const AT_MOST_EVERY_MS = 100
/** Waiting calls of one instance. Each reads the database at least once a second. */
const MAX_WAITING = 10

export interface Wait {
  hints: Hints
  /** The calls that wait, by instance. */
  waiting: Map<InstanceId, number>
  waitMs: number
  /** Aborted when the caller has disconnected. */
  gone: AbortSignal
  /** Called after a wait: the key of the caller may have expired or been revoked. */
  checkAgain(): Promise<void>
}

/**
 * Opens a medium. If it is still being fetched from WhatsApp, waits for it.
 * @throws Refusal `media_pending` once `waitMs` has passed, or at once if too many other calls of the instance are already waiting
 */
export async function openWhenThere(
  media: Pick<MediaApi, 'open'>,
  instanceId: InstanceId,
  id: string,
  { waiting, ...wait }: Wait,
): ReturnType<MediaApi['open']> {
  const others = waiting.get(instanceId) ?? 0
  if (wait.waitMs === 0 || others >= MAX_WAITING) return media.open(instanceId, id)
  waiting.set(instanceId, others + 1)
  try {
    return await untilThere(media, instanceId, id, wait)
  } finally {
    const left = waiting.get(instanceId)! - 1
    if (left === 0) waiting.delete(instanceId)
    else waiting.set(instanceId, left)
  }
}

async function untilThere(
  media: Pick<MediaApi, 'open'>,
  instanceId: InstanceId,
  id: string,
  { hints, waitMs, gone, checkAgain }: Omit<Wait, 'waiting'>,
): ReturnType<MediaApi['open']> {
  const until = performance.now() + waitMs
  const ended = new AbortController()
  const closed = AbortSignal.any([gone, ended.signal])
  // The key of the caller may have been revoked.
  using _ = { [Symbol.dispose]: hints.on('access', () => ended.abort(), instanceId) }
  for (let hasWaited = false; ; hasWaited = true) {
    try {
      const found = await media.open(instanceId, id)
      if (hasWaited) await checkAgain()
      return found
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
