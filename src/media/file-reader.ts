import type { InstanceId } from '../domain/ids.ts'
import { FileUnavailable, type GoneReason, type MissingFile, type StoredFile } from '../domain/media.ts'
import type { FoundMedia, MediaRows } from '../store/media/media.ts'
import { DamagedFile, decryptFile, storedRange } from './chunks.ts'
import type { MediaStorage } from './storage/storage.ts'
import { nameOf } from './write-file.ts'

/** Reads files for the sender, in any thread and without the limits of callers. */
export class FileReader {
  readonly #open: () => Promise<MediaStorage>
  readonly #rows: Pick<MediaRows, 'find'>

  constructor(open: () => Promise<MediaStorage>, rows: Pick<MediaRows, 'find'>) {
    this.#open = open
    this.#rows = rows
  }

  async find(instanceId: InstanceId, mediaId: string): Promise<StoredFile | MissingFile> {
    const found = await this.#rows.find(instanceId, mediaId)
    if (found?.kind === 'pending') return 'pending'
    if (found?.kind !== 'stored') return found === null ? 'gone' : toMissing(found.reason)
    return { media: found.media, open: () => this.#read(found) }
  }

  /** If the same content was uploaded again since the row was read, the medium has another file now. */
  async #read({ media, file, key }: FoundMedia & { kind: 'stored' }): Promise<AsyncIterable<Uint8Array>> {
    const range = { from: 0, to: media.size - 1 }
    const storage = await this.#open()
    const stored = await storage.read(nameOf(file), storedRange(range, media.size))
    if (stored !== null) return withoutDamage(decryptFile(key, stored, media.size, range))
    const found = await this.#rows.find(file.instanceId, media.id)
    if (found?.kind === 'stored' && found.file.fileId !== file.fileId) return this.#read(found)
    throw new FileUnavailable('The file is missing in the storage.')
  }
}

function toMissing(reason: GoneReason): MissingFile {
  if (reason === 'media_too_large') return 'too_large'
  return reason === 'media_quota_exceeded' ? 'no_space' : 'gone'
}

async function* withoutDamage(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes
  } catch (error) {
    if (error instanceof DamagedFile) throw new FileUnavailable(error.message, { cause: error })
    throw error
  }
}
