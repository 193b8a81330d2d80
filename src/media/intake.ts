import { createHash } from 'node:crypto'
import { fileTypeFromBuffer } from 'file-type'
import { MAX_MEDIA_BYTES, maxBytesOf, parseMimetype, typeOf } from '../domain/media.ts'
import { Refusal } from '../domain/refusal.ts'

/** How much of a file is read to detect its type. */
const HEAD_BYTES = 65_536
const MIB = 1_048_576

/** Passes the bytes of a file on, and learns its type, size and hash from them. */
export class Intake {
  readonly #hash = createHash('sha256')
  readonly #declaredType: string | null
  readonly #onBytes: (count: number) => void
  readonly #maxBytes: number | undefined
  #mimetype: string | null = null
  #size = 0

  /**
   * @param declaredType from the caller's `Content-Type`, or from the message
   * @param maxBytes how large the file may be. Default: what its declared type and its actual type allow
   */
  constructor(declaredType: string | null, onBytes: (count: number) => void, maxBytes?: number) {
    this.#maxBytes = maxBytes
    this.#declaredType = declaredType === null ? null : parseMimetype(declaredType)
    this.#onBytes = onBytes
  }

  /** @throws Refusal if the file exceeds the limit for its type, or is empty */
  async *pass(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const head: Uint8Array[] = []
    for await (const part of bytes) {
      this.#size += part.length
      this.#hash.update(part)
      this.#onBytes(part.length)
      this.#refuseLarge()
      if (this.#mimetype === null) {
        head.push(part)
        if (this.#size < HEAD_BYTES) continue
        yield* await this.#recognise(head)
      } else yield part
    }
    if (this.#size === 0) throw new Refusal('invalid_request', 'The body is empty: send the bytes of the file.')
    if (this.#mimetype === null) yield* await this.#recognise(head)
  }

  /** The facts of the complete file. */
  finish(): { mimetype: string; size: number; sha256: Uint8Array } {
    return { mimetype: this.#mimetype!, size: this.#size, sha256: this.#hash.digest() }
  }

  async #recognise(head: readonly Uint8Array[]): Promise<readonly Uint8Array[]> {
    this.#mimetype = typeOf(await detectType(Buffer.concat(head)), this.#declaredType)
    this.#refuseLarge()
    return head
  }

  #refuseLarge(): void {
    for (const type of [this.#declaredType, this.#mimetype]) refuseLarge(this.#size, type, this.#maxBytes)
  }
}

/** @param mimetype null: none was declared, or it is unknown yet */
export function refuseLarge(size: number, mimetype: string | null, maxBytes?: number): void {
  const most = maxBytes ?? (mimetype === null ? MAX_MEDIA_BYTES : maxBytesOf(mimetype))
  if (size <= most) return
  const subject = mimetype === null ? 'A file' : `A file of type ${mimetype}`
  throw new Refusal('media_too_large', `${subject} may be at most ${most / MIB} MiB.`)
}

/** Null if the content does not show its type, or if it cannot be parsed. */
async function detectType(head: Uint8Array): Promise<string | null> {
  try {
    return (await fileTypeFromBuffer(head))?.mime ?? null
  } catch {
    return null
  }
}
