import { setImmediate } from 'node:timers/promises'
import { Type } from 'typebox'
import type { InstanceId } from '../../domain/ids.ts'
import { Refusal, type RefusalCode } from '../../domain/refusal.ts'
import type { Line } from '../../store/conversations/conversations.ts'
import type { Store } from '../../store/store.ts'
import type { MediaApi } from '../context.ts'

const LINES_AT_ONCE = 200
const GONE: ReadonlySet<RefusalCode> = new Set(['media_gone', 'media_not_found', 'media_pending'])

export const erasedSchema = Type.Object(
  {
    erased: Type.Integer({ description: 'Files that were erased now.' }),
    inUse: Type.Integer({ description: 'Files that stay, because a queued message contains them.' }),
  },
  { title: 'ErasedFiles' },
)

/**
 * Erases the files of all messages of a chat, latest first. A kill in between leaves the older ones, which another call erases.
 * @throws Refusal
 */
export async function eraseFilesOfChat(
  { conversations }: Pick<Store, 'conversations'>,
  media: Pick<MediaApi, 'erase'>,
  instanceId: InstanceId,
  chat: string,
): Promise<{ erased: number; inUse: number }> {
  const done = new Set<string>()
  const inUse = new Set<string>()
  let erased = 0
  let cursor: string | undefined
  do {
    const page = await conversations.listLines(instanceId, { limit: LINES_AT_ONCE, cursor }, { chat })
    for (const id of page.data.flatMap(filesIn)) {
      if (done.has(id)) continue
      done.add(id)
      const outcome = await erase(media, instanceId, id)
      if (outcome === 'erased') erased += 1
      if (outcome === 'in_use') inUse.add(id)
    }
    cursor = page.nextCursor ?? undefined
    // On SQLite reads do not let other calls take their turn.
    await setImmediate()
  } while (cursor !== undefined)
  return { erased, inUse: inUse.size }
}

/** Its file, or the image of its link preview. */
function filesIn(line: Line): string[] {
  if (line.direction === 'out') {
    const { file, extras } = line.message
    return [file?.mediaId, extras?.preview?.image].filter(id => id !== undefined)
  }
  const { media } = line.message
  return media && (media.state === 'ready' || media.state === 'pending') ? [media.id] : []
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
