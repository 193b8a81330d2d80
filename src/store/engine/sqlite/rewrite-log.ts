import { readSync, writeSync } from 'node:fs'

// SQLite, "WAL-mode File Format": the header of the log, then frames: a header and a page. A frame belongs to the present log if
// it has the log's salt and the checksum of everything up to it.
const HEADER_BYTES = 32
const HEADER_SUMMED_BYTES = 24
const PAGE_BYTES_AT = 8
const SALT_AT = 16
const FRAME_HEADER_BYTES = 24
const FRAME_SUMMED_BYTES = 8
const FRAME_SALT_AT = 8
const FRAME_SUMS_AT = 16
const SALT_BYTES = 8
/** The index begins with a header in the machine's byte order. It contains the number of frames of all commits. */
const INDEX_FRAMES_AT = 16
const CHUNK_BYTES = 1024 * 1024

/** The log no longer contains what was written to it. */
export class LogDamaged extends Error {
  constructor() {
    super(
      'The write-ahead log of the database lost data that the disk did not accept. Restart Pombal: it goes back to the last commit on disk.',
    )
    this.name = new.target.name
  }
}

/**
 * Writes every byte of the log again, in place. After a failed sync, Linux treats the pages as written, so only a new
 * write brings them to disk. Some file systems return the former bytes instead, which the checksums reveal. Sync the
 * log afterwards.
 * @param log its descriptor @param index the descriptor of its index (`-shm`). Nothing else may write at the same time.
 * @returns the number of frames
 * @throws LogDamaged
 */
export function rewriteLog(log: number, index: number): number {
  const frames = new Uint32Array(read(index, INDEX_FRAMES_AT, 4).buffer)[0]!
  if (frames === 0) return 0
  const header = read(log, 0, HEADER_BYTES)
  const sums = new Checksum((header.readUInt32BE(0) & 1) === 0)
  sums.add(header, 0, HEADER_SUMMED_BYTES)
  if (!sums.equals(header, HEADER_SUMMED_BYTES)) throw new LogDamaged()
  const salt = header.subarray(SALT_AT, SALT_AT + SALT_BYTES)
  const frameBytes = FRAME_HEADER_BYTES + header.readUInt32BE(PAGE_BYTES_AT)
  write(log, 0, header)
  const perChunk = Math.ceil(CHUNK_BYTES / frameBytes)
  for (let first = 0; first < frames; first += perChunk) {
    const at = HEADER_BYTES + first * frameBytes
    const chunk = read(log, at, Math.min(perChunk, frames - first) * frameBytes)
    for (let frame = 0; frame < chunk.length; frame += frameBytes) {
      sums.add(chunk, frame, frame + FRAME_SUMMED_BYTES)
      sums.add(chunk, frame + FRAME_HEADER_BYTES, frame + frameBytes)
      const hasSalt = salt.equals(chunk.subarray(frame + FRAME_SALT_AT, frame + FRAME_SALT_AT + SALT_BYTES))
      if (!hasSalt || !sums.equals(chunk, frame + FRAME_SUMS_AT)) throw new LogDamaged()
    }
    write(log, at, chunk)
  }
  return frames
}

/** The cumulative checksum of SQLite's log. */
class Checksum {
  readonly #littleEndian: boolean
  #first = 0
  #second = 0

  constructor(littleEndian: boolean) {
    this.#littleEndian = littleEndian
  }

  add(bytes: Buffer, from: number, to: number): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    for (let at = from; at < to; at += 8) {
      this.#first = (this.#first + view.getUint32(at, this.#littleEndian) + this.#second) >>> 0
      this.#second = (this.#second + view.getUint32(at + 4, this.#littleEndian) + this.#first) >>> 0
    }
  }

  equals(bytes: Buffer, at: number): boolean {
    return bytes.readUInt32BE(at) === this.#first && bytes.readUInt32BE(at + 4) === this.#second
  }
}

function read(descriptor: number, at: number, length: number): Buffer {
  const bytes = Buffer.from(new ArrayBuffer(length))
  if (readSync(descriptor, bytes, 0, length, at) !== length) throw new LogDamaged()
  return bytes
}

function write(descriptor: number, at: number, bytes: Buffer): void {
  for (let from = 0; from < bytes.length; ) from += writeSync(descriptor, bytes, from, bytes.length - from, at + from)
}
