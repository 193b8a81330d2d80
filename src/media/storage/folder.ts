import { access, constants, type FileHandle, mkdir, open, opendir, readFile, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { ByteRange } from '../../domain/media.ts'
import { waitAtMost } from '../../kit/deadline.ts'
import { SEALED_BYTES } from '../chunks.ts'
import { FileCalls } from './file-calls.ts'
import { ID_FILE, NOT_MOUNTED } from './folder-id.ts'
import type { MediaStorage } from './storage.ts'

const PRIVATE_FOLDER = 0o700
const PRIVATE_FILE = 0o600
/** `remove` may remove the folder of an instance at any time until the first file is in it. */
const MAX_TRIES = 100
/** Four encrypted chunks, so that no chunk is spread over two pieces. */
const READ_BYTES = 4 * SEALED_BYTES
/** Calls of the file system in the main thread, and the same number in all WhatsApp threads together: half of libuv's threads. */
export const CALLS_AT_ONCE = 32
/** A slow disk may take half of it to sync the largest file. */
const CALL_TIMEOUT_MS = 60_000
/** How long a write that failed waits until its remains are removed. */
const DISCARD_TIMEOUT_MS = 5_000

interface FolderOptions {
  callsAtOnce?: number | undefined
  callTimeoutMs?: number
}

/** Files in a folder: `<root>/<instance>/<file>`. A file that is being written is called `<file>.partial`. */
export class FolderStorage implements MediaStorage {
  readonly #root: string
  readonly #id: string | null
  readonly #calls: FileCalls

  /** @param id while the folder has no or another ID, every call rejects. Null: the ID is not compared */
  constructor(
    root: string,
    id: string | null = null,
    { callsAtOnce = CALLS_AT_ONCE, callTimeoutMs = CALL_TIMEOUT_MS }: FolderOptions = {},
  ) {
    this.#root = resolve(root)
    this.#id = id
    this.#calls = new FileCalls(callsAtOnce, callTimeoutMs)
  }

  async write(name: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    await this.#compareId()
    const path = join(this.#root, name)
    const partial = partialOf(path)
    const file = await this.#create(partial)
    try {
      for await (const part of bytes) await this.#writeAll(file, part)
      await this.#calls.run(() => file.sync())
      await this.#calls.run(() => file.close())
      await this.#calls.run(
        () => rename(partial, path),
        () => rm(path, { force: true }),
      )
      // Another upload may have created the instance's folder a moment ago.
      for (const folder of [dirname(path), this.#root]) await this.#syncFolder(folder)
    } catch (error) {
      await waitAtMost(
        DISCARD_TIMEOUT_MS,
        this.#calls.runWithoutLimit(() => discard(file, partial)),
      )
      throw error
    }
  }

  async read(name: string, range: ByteRange): Promise<AsyncIterable<Uint8Array> | null> {
    const path = join(this.#root, name)
    const file = await this.#calls.run(
      () => open(path, 'r').catch(nullIfMissing),
      async late => late?.close(),
    )
    if (file === null) await this.#compareId()
    return file && this.#readRange(file, range)
  }

  /** Between two pieces, the caller may take any time. */
  async *#readRange(file: FileHandle, { from, to }: ByteRange): AsyncGenerator<Uint8Array> {
    try {
      for (let position = from; position <= to; ) {
        const piece = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, to + 1 - position))
        const { bytesRead } = await this.#calls.run(() => file.read(piece, 0, piece.length, position))
        if (bytesRead === 0) return
        position += bytesRead
        yield piece.subarray(0, bytesRead)
      }
    } finally {
      this.#calls.runWithoutLimit(() => file.close()).catch(() => undefined)
    }
  }

  async remove(name: string): Promise<void> {
    await this.#compareId()
    const path = join(this.#root, name)
    const folder = dirname(path)
    for (const each of [partialOf(path), path]) await this.#calls.run(() => rm(each, { force: true }))
    const isThere = await this.#syncFolder(folder).then(() => true, nullIfMissing)
    // Fails unless it is empty.
    if (isThere) await this.#calls.run(() => rmdir(folder)).catch(() => undefined)
  }

  /** The folder must have the ID. It, or the nearest existing folder above it, must be writable. */
  async check(): Promise<void> {
    for (let folder = this.#root; ; folder = dirname(folder)) {
      const isThere = await this.#calls
        .run(() => access(folder, constants.R_OK | constants.W_OK | constants.X_OK))
        .then(() => true, nullIfMissing)
      if (isThere) break
    }
    // Only a folder has entries.
    await this.#calls.run(() => opendir(this.#root).then(opened => opened.close(), nullIfMissing))
    await this.#compareId()
  }

  async close(): Promise<void> {}

  /** @throws if another folder is there now, such as the empty one under a lost mount: its files would be taken for erased */
  async #compareId(): Promise<void> {
    if (this.#id === null) return
    const id = await this.#calls.run(() => readFile(join(this.#root, ID_FILE), 'utf8').catch(nullIfMissing))
    if (id?.trim() === this.#id) return
    if (this.#id === NOT_MOUNTED)
      throw new Error(
        `When the service started, ${this.#root} had no directory of an instance (inst_…), although files are stored, or its ` +
          `${ID_FILE} could not be read or created. Mount the folder, let the service write to it, then restart the service.`,
      )
    throw new Error(
      `${this.#root} is not the folder of the stored files: its ${ID_FILE} is not ${this.#id}. Is it mounted?`,
    )
  }

  async #create(path: string): Promise<FileHandle> {
    const folder = dirname(path)
    for (let tries = 1; ; tries += 1) {
      // Also fails if the folder is removed at the same time.
      const created = await this.#calls.run(() =>
        mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER }).catch(nullIfMissing),
      )
      if (typeof created === 'string') await this.#syncAbove(created)
      const file = await this.#calls.run(
        () => open(path, 'wx', PRIVATE_FILE).catch(nullIfMissing),
        async late => late && discard(late, path),
      )
      if (file !== null) return file
      if (tries === MAX_TRIES) throw new Error(`The folder of ${path} keeps disappearing.`)
    }
  }

  /** Makes a new root survive a power failure, as far as the folders above it can be read. @param created the highest new folder */
  async #syncAbove(created: string): Promise<void> {
    const highest = resolve(created)
    for (let each = this.#root; each.length >= highest.length; each = dirname(each))
      await this.#syncFolder(dirname(each)).catch(() => undefined)
  }

  /** A write may store fewer bytes than it is given. */
  async #writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
    for (let from = 0; from < bytes.length; )
      from += (await this.#calls.run(() => file.write(bytes, from))).bytesWritten
  }

  /** Makes the entries of a folder survive a power failure. */
  async #syncFolder(folder: string): Promise<void> {
    await this.#calls.run(async () => {
      const handle = await open(folder, 'r')
      try {
        // Windows cannot sync a folder: it answers EPERM.
        if (process.platform !== 'win32') await handle.sync()
      } finally {
        await handle.close()
      }
    })
  }
}

function partialOf(path: string): string {
  return `${path}.partial`
}

async function discard(file: FileHandle, path: string): Promise<void> {
  // It may be closed already.
  await file.close().catch(() => undefined)
  await rm(path, { force: true })
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}
