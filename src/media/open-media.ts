import type { Logger } from 'pino'
import type { MediaPlace } from '../domain/media.ts'
import { StoreUnusable } from '../store/errors.ts'
import type { MediaRows } from '../store/media/media.ts'
import type { Store } from '../store/store.ts'
import { startCleaning } from './cleaning.ts'
import { MediaLibrary } from './media-library.ts'
import { openStorage } from './storage/open-storage.ts'

export interface OpenMediaOptions {
  place: MediaPlace
  store: Pick<Store, 'media' | 'hints' | 'clock'>
  retentionMs: number
  quotaBytes: number
  bytesPerMinute: number
  logger: Logger
}

/**
 * Without a storage. @throws StoreUnusable if there are files: no node could read or remove them, so their instances could not be
 * erased either
 */
export async function refuseFiles(rows: Pick<MediaRows, 'hasFiles'>): Promise<null> {
  if (!(await rows.hasFiles())) return null
  throw new StoreUnusable(
    'Files are stored, but MEDIA_URL is not set. Set it to where the files are, as on the other nodes.',
  )
}

/** Opens the storage, and removes erased files from it from now on. */
export async function openMedia(options: OpenMediaOptions): Promise<{ library: MediaLibrary; close(): Promise<void> }> {
  const { hints, media: rows, clock } = options.store
  const storage = await openStorage(options.place)
  const shared = { ...options, rows, storage, now: clock.now }
  const cleaning = startCleaning({ ...shared, keepGoneMs: options.retentionMs })
  // The files of a deleted instance.
  const off = hints.on('access', () => cleaning.wake())
  return {
    library: new MediaLibrary({ ...shared, onDoomed: () => cleaning.wake() }),
    async close() {
      off()
      await cleaning.stop()
      await storage.close()
    },
  }
}
