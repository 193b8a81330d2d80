import type { ByteRange } from '../../domain/media.ts'

/** Keeps files under names. It does not know what is in them, and no two files are ever written under one name. */
export interface MediaStorage {
  /**
   * Writes a file. A part of `bytes` is valid until the next one is requested. The file can be read only when all of
   * it is stored, and from then on it survives a power failure. If `bytes` throws, `write` rejects and leaves nothing.
   * After a crash, `remove` removes whatever is left.
   */
  write(name: string, bytes: AsyncIterable<Uint8Array>): Promise<void>
  /** The bytes in pieces of any size; null if there is no such file. The caller reads to the end, or ends the iteration. */
  read(name: string, range: ByteRange): Promise<AsyncIterable<Uint8Array> | null>
  /** Removes the file and what an interrupted `write` left of it. Does nothing if there is no such file. */
  remove(name: string): Promise<void>
  /** @throws if it cannot be used, as far as that shows without writing */
  check(): Promise<void>
  close(): Promise<void>
}
