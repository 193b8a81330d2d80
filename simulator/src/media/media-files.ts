import { randomBytes } from 'node:crypto'
import type { ReadStream } from 'node:fs'
import { type FileHandle, link, mkdir, mkdtemp, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ByteSource } from './media-cipher.ts'

/** An owner's phone number and random digits. */
const FILE_ID = /^(\d{1,15})_[0-9a-f]{32}$/
const ID_BYTES = 16
const ENCRYPTED = '.enc'
const PARTIAL = '.part'
/** A partial file as old as this belongs to no upload: its process was killed. */
const ABANDONED_MS = 3_600_000
const CHUNK_BYTES = 64 * 1024

export interface OpenFile {
  readonly size: number
  /** Reads from `start` to `end`, both included. The file is closed with the stream. */
  stream(start?: number, end?: number): ReadStream
  close(): Promise<void>
}

/**
 * The encrypted files on the media host, each under an ID that begins with the number of the account it belongs to. If they
 * exceed `maxBytes` in total, the oldest are erased.
 */
export class MediaFiles {
  readonly #given: string | null
  readonly #maxBytes: number
  /** File IDs and sizes in bytes, the oldest first. */
  readonly #sizes = new Map<string, number>()
  #total = 0
  #folder: Promise<string> | null = null

  /** @param folder kept across restarts; null: a temporary one, which `close` erases */
  constructor(folder: string | null, maxBytes: number) {
    this.#given = folder
    this.#maxBytes = maxBytes
  }

  /** Stores a file and resolves with its ID once it is complete. If `bytes` throws, nothing is left. */
  async create(owner: string, bytes: ByteSource): Promise<string> {
    const id = `${owner}_${randomBytes(ID_BYTES).toString('hex')}`
    const folder = await this.#open()
    const partial = join(folder, id + PARTIAL)
    try {
      await writeFile(partial, bytes)
      const { size } = await stat(partial)
      await rename(partial, join(folder, id + ENCRYPTED))
      await this.#keep(id, size)
    } catch (error) {
      await rm(partial, { force: true })
      throw error
    }
    return id
  }

  /** Null if there is no file with this ID. */
  async find(id: string): Promise<OpenFile | null> {
    if (!FILE_ID.test(id)) return null
    const path = join(await this.#open(), id + ENCRYPTED)
    const handle = await open(path).catch(unlessMissing)
    if (!handle) return null
    const { size } = await handle.stat()
    return new StoredFile(handle, size)
  }

  /** The same file under a new ID. Null if there is none. */
  async copy(id: string): Promise<string | null> {
    const file = await this.find(id)
    if (!file) return null
    await file.close()
    const folder = await this.#open()
    const another = `${ownerOf(id)}_${randomBytes(ID_BYTES).toString('hex')}`
    await link(join(folder, id + ENCRYPTED), join(folder, another + ENCRYPTED))
    await this.#keep(another, file.size)
    return another
  }

  async idsOf(owner: string): Promise<string[]> {
    if (!this.#folder && this.#given === null) return []
    await this.#open()
    return [...this.#sizes.keys()].filter(id => ownerOf(id) === owner)
  }

  async eraseAllOf(owner: string): Promise<void> {
    for (const id of await this.idsOf(owner)) await this.#erase(id)
  }

  async close(): Promise<void> {
    if (this.#given === null && this.#folder) await rm(await this.#folder, { recursive: true, force: true })
  }

  #open(): Promise<string> {
    this.#folder ??= this.#prepare().catch(error => {
      this.#folder = null
      throw error
    })
    return this.#folder
  }

  async #prepare(): Promise<string> {
    if (this.#given === null) return mkdtemp(join(tmpdir(), 'simulated-media-'))
    await mkdir(this.#given, { recursive: true })
    const found: { id: string; size: number; at: number }[] = []
    for (const name of await readdir(this.#given)) {
      const about = await stat(join(this.#given, name)).catch(unlessMissing)
      if (!about) continue
      if (name.endsWith(PARTIAL) && about.mtimeMs < Date.now() - ABANDONED_MS) await rm(join(this.#given, name))
      const id = name.slice(0, -ENCRYPTED.length)
      if (name.endsWith(ENCRYPTED) && FILE_ID.test(id)) found.push({ id, size: about.size, at: about.ctimeMs })
    }
    for (const { id, size } of found.sort((a, b) => a.at - b.at)) {
      this.#sizes.set(id, size)
      this.#total += size
    }
    return this.#given
  }

  async #keep(id: string, size: number): Promise<void> {
    this.#sizes.set(id, size)
    this.#total += size
    for (const oldest of this.#sizes.keys()) {
      if (this.#total <= this.#maxBytes || oldest === id) return
      await this.#erase(oldest)
    }
  }

  async #erase(id: string): Promise<void> {
    this.#total -= this.#sizes.get(id) ?? 0
    this.#sizes.delete(id)
    await rm(join(await this.#open(), id + ENCRYPTED), { force: true })
  }
}

class StoredFile implements OpenFile {
  readonly size: number
  readonly #handle: FileHandle

  constructor(handle: FileHandle, size: number) {
    this.#handle = handle
    this.size = size
  }

  stream(start = 0, end = Number.POSITIVE_INFINITY): ReadStream {
    return this.#handle.createReadStream({ start, end, highWaterMark: CHUNK_BYTES })
  }

  close(): Promise<void> {
    return this.#handle.close()
  }
}

/** The phone number of the account that a file belongs to. Null if this is not the ID of a file. */
export function ownerOf(id: string): string | null {
  return FILE_ID.exec(id)?.[1] ?? null
}

function unlessMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}
