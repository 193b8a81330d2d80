import { setImmediate } from 'node:timers/promises'
import { Type } from 'typebox'
import type { InstanceId } from '../../domain/ids.ts'
import { Refusal, type RefusalCode } from '../../domain/refusal.ts'
import type { Store } from '../../store/store.ts'
import type { MediaApi } from '../context.ts'

/** Messages per query, which returns only the IDs of their files. */
const MESSAGES_AT_ONCE = 500
const RETRY_AFTER_SECONDS = 2
const GONE: ReadonlySet<RefusalCode> = new Set(['media_gone', 'media_not_found', 'media_pending'])

export const erasedSchema = Type.Object(
  {
    erased: Type.Integer({ description: 'Files that this call erased.' }),
    inUse: Type.Integer({ description: 'Files that stay, because a queued message contains them.' }),
  },
  { title: 'ErasedFiles' },
)

/**
 * Erases the files of all messages of a chat, latest first. If it is interrupted, another call erases the rest.
 * @param stopped aborted when the caller has disconnected, or the service stops
 * @throws Refusal `too_many_transfers` while another call erases the files of a chat of the instance
 */
export async function eraseFilesOfChat(
  { conversations }: Pick<Store, 'conversations'>,
  media: Pick<MediaApi, 'erase' | 'beginErasure'>,
  instanceId: InstanceId,
  chat: string,
  stopped: AbortSignal,
): Promise<{ erased: number; inUse: number }> {
  using _ = media.beginErasure(instanceId)
  const done = new Set<string>()
  const inUse = new Set<string>()
  let erased = 0
  let cursor: string | undefined
  do {
    const page = await conversations.listFiles(instanceId, { limit: MESSAGES_AT_ONCE, cursor }, chat)
    for (const id of page.data) {
      refuseStopped(stopped)
      if (done.has(id)) continue
      done.add(id)
      const outcome = await erase(media, instanceId, id)
      if (outcome === 'erased') erased += 1
      if (outcome === 'in_use') inUse.add(id)
    }
    cursor = page.nextCursor ?? undefined
    // On SQLite a read blocks the event loop, so other calls run in between.
    await setImmediate()
    refuseStopped(stopped)
  } while (cursor !== undefined)
  return { erased, inUse: inUse.size }
}

function refuseStopped(stopped: AbortSignal): void {
  if (stopped.aborted) throw new Refusal('service_unavailable', undefined, { retryAfterSeconds: RETRY_AFTER_SECONDS })
}

async function erase(
  media: Pick<MediaApi, 'erase'>,
  instanceId: InstanceId,
  id: string,
): Promise<'erased' | 'in_use' | 'gone'> {
  try {
    await media.erase(instanceId, id)
    return 'erased'
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    if (error.code === 'media_in_use') return 'in_use'
    if (GONE.has(error.code)) return 'gone'
    throw error
  }
}
