import type { Logger } from 'pino'
import type { MediaPlace } from '../domain/media.ts'
import type { Hints } from '../store/hints.ts'
import type { MediaRows } from '../store/media/media.ts'
import { startCleaning } from './cleaning.ts'
import { MediaLibrary } from './media-library.ts'
import { FolderStorage } from './storage/folder.ts'
import type { MediaStorage } from './storage/storage.ts'

export interface OpenMediaOptions {
  place: MediaPlace
  rows: MediaRows
  hints: Hints
  retentionMs: number
  quotaBytes: number
  bytesPerMinute: number
  logger: Logger
  now: () => number
}

/** Opens the storage and removes what is to be removed from it, from now on. */
export async function openMedia(options: OpenMediaOptions): Promise<{ library: MediaLibrary; close(): Promise<void> }> {
  const storage = await openStorage(options.place)
  const cleaning = startCleaning({ ...options, storage, keepGoneMs: options.retentionMs })
  // The files of a deleted instance.
  const off = options.hints.on('access', () => cleaning.wake())
  const library = new MediaLibrary({ ...options, storage, onDoomed: () => cleaning.wake() })
  return {
    library,
    async close() {
      off()
      await cleaning.stop()
      await storage.close()
    },
  }
}

async function openStorage(place: MediaPlace): Promise<MediaStorage> {
  if (place.kind === 'folder') return new FolderStorage(place.path)
  // Loaded only if it is used: it takes a few hundred milliseconds and 30 MB.
  const { BucketStorage } = await import('./storage/bucket.ts')
  return new BucketStorage(place)
}
