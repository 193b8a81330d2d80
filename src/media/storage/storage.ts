import type { ByteRange } from '../../domain/media.ts'

/** Keeps files under names. It does not know what is in them, and no two files are ever written under one name. */
export interface MediaStorage {
  /**
   * Writes a file. A part of `bytes` is valid until the next one is asked for. The file can be read only when all of it is stored, and from then on it survives a power failure. If `bytes` throws,
   * nothing is left and the error is thrown on. A kill leaves at most something that `remove` removes.
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
