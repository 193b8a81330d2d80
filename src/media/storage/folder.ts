import { access, constants, type FileHandle, mkdir, open, opendir, readFile, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { ByteRange } from '../../domain/media.ts'
import { SEALED_BYTES } from '../chunks.ts'
import { ID_FILE, NOT_MOUNTED } from './folder-id.ts'
import type { MediaStorage } from './storage.ts'

const PRIVATE_FOLDER = 0o700
const PRIVATE_FILE = 0o600
/** `remove` may remove the folder of an instance at any time until the first file is in it. */
const MAX_TRIES = 100
/** Four encrypted chunks, so that no chunk is spread over two pieces. */
const READ_BYTES = 4 * SEALED_BYTES

/** Files in a folder: `<root>/<instance>/<file>`. A file that is being written is called `<file>.partial`. */
export class FolderStorage implements MediaStorage {
  readonly #root: string
  readonly #id: string | null

  /** @param id while the folder has no or another ID, every call rejects. Null: the ID is not compared */
  constructor(root: string, id: string | null = null) {
    this.#root = resolve(root)
    this.#id = id
  }

  async write(name: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    await this.#compareId()
    const path = join(this.#root, name)
    const partial = partialOf(path)
    const file = await this.#create(partial)
    try {
      try {
        for await (const part of bytes) await writeAll(file, part)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(partial, path)
      // Another upload may have created the instance's folder a moment ago.
      for (const folder of [dirname(path), this.#root]) await syncFolder(folder)
    } catch (error) {
      await rm(partial, { force: true }).catch(() => undefined)
      throw error
    }
  }

  async read(name: string, { from, to }: ByteRange): Promise<AsyncIterable<Uint8Array> | null> {
    const file = await open(join(this.#root, name), 'r').catch(nullIfMissing)
    if (file === null) await this.#compareId()
    return file?.createReadStream({ start: from, end: to, highWaterMark: READ_BYTES }) ?? null
  }

  async remove(name: string): Promise<void> {
    await this.#compareId()
    const path = join(this.#root, name)
    const folder = dirname(path)
    for (const each of [partialOf(path), path]) await rm(each, { force: true })
    const isThere = await syncFolder(folder).then(() => true, nullIfMissing)
    // Fails unless it is empty.
    if (isThere) await rmdir(folder).catch(() => undefined)
  }

  /** The folder must have the ID. It, or the nearest existing folder above it, must be writable. */
  async check(): Promise<void> {
    for (let folder = this.#root; ; folder = dirname(folder)) {
      const isThere = await access(folder, constants.R_OK | constants.W_OK | constants.X_OK).then(
        () => true,
        nullIfMissing,
      )
      if (isThere) break
    }
    // Only a folder has entries.
    await opendir(this.#root).then(opened => opened.close(), nullIfMissing)
    await this.#compareId()
  }

  async close(): Promise<void> {}

  /** @throws if another folder is there now, such as the empty one under a lost mount: its files would be taken for erased */
  async #compareId(): Promise<void> {
    if (this.#id === null) return
    const id = await readFile(join(this.#root, ID_FILE), 'utf8').catch(nullIfMissing)
    if (id?.trim() === this.#id) return
    if (this.#id === NOT_MOUNTED)
      throw new Error(
        `${this.#root} was empty when the service started, but files are stored. Mount it, then restart the service.`,
      )
    throw new Error(
      `${this.#root} is not the folder of the stored files: its ${ID_FILE} is not ${this.#id}. Is it mounted?`,
    )
  }

  async #create(path: string): Promise<FileHandle> {
    const folder = dirname(path)
    for (let tries = 1; ; tries += 1) {
      // Also fails if the folder is removed at the same time.
      const created = await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER }).catch(nullIfMissing)
      if (typeof created === 'string') await this.#syncAbove(created)
      const file = await open(path, 'wx', PRIVATE_FILE).catch(nullIfMissing)
      if (file !== null) return file
      if (tries === MAX_TRIES) throw new Error(`The folder of ${path} disappears again and again.`)
    }
  }

  /** Makes a new root survive a power failure, as far as the folders above it can be read. @param created the highest new folder */
  async #syncAbove(created: string): Promise<void> {
    const highest = resolve(created)
    for (let each = this.#root; each.length >= highest.length; each = dirname(each))
      await syncFolder(dirname(each)).catch(() => undefined)
  }
}

function partialOf(path: string): string {
  return `${path}.partial`
}

/** A write may store fewer bytes than it is given. */
async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let from = 0; from < bytes.length; ) from += (await file.write(bytes, from)).bytesWritten
}

/** Makes the entries of a folder survive a power failure. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}
