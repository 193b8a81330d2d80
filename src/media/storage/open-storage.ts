import type { MediaPlace } from '../../domain/media.ts'
import { FolderStorage } from './folder.ts'
import type { MediaStorage } from './storage.ts'

/** Why no node starts without a storage. */
export const STORAGE_MISSING =
  'Files are stored, but MEDIA_URL is not set. Set it to where the files are, as on the other nodes.'

/** @param callsAtOnce see `CALLS_AT_ONCE` */
export async function openStorage(place: MediaPlace, callsAtOnce?: number): Promise<MediaStorage> {
  if (place.kind === 'folder') return new FolderStorage(place.path, place.id, { callsAtOnce })
  // Loaded only if it is used: it takes a few hundred milliseconds and 30 MB.
  const { BucketStorage } = await import('./bucket.ts')
  return new BucketStorage(place)
}

/** Opens the storage when it is first used. */
export function openWhenUsed(place: MediaPlace, callsAtOnce: number): () => Promise<MediaStorage> {
  let storage: Promise<MediaStorage> | undefined
  return () => {
    storage ??= openStorage(place, callsAtOnce).catch(error => {
      storage = undefined
      throw error
    })
    return storage
  }
}
