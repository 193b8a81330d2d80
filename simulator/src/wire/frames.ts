import { PROLOGUE } from './noise.ts'

const LENGTH_BYTES = 3
/**
 * "ED", version 0 1: marks routing information, which a client sends before the prologue if a server has given it some.
 */
const ROUTING_MARK = Buffer.from([0x45, 0x44, 0, 1])

/** Adds the length that precedes every frame: 3 bytes, big endian. */
export function frame(data: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(LENGTH_BYTES + data.length)
  framed.writeUIntBE(data.length, 0, LENGTH_BYTES)
  framed.set(data, LENGTH_BYTES)
  return framed
}

/** Splits the incoming bytes into frames. One WebSocket message may hold part of a frame or several. */
export class FrameReader {
  /** A longer frame is an error. The limit is small until the client is identified. */
  maxFrameBytes: number
  #buffered: Buffer = Buffer.alloc(0)
  #introduced = false

  constructor(maxFrameBytes: number) {
    this.maxFrameBytes = maxFrameBytes
  }

  /** @throws Error if this is not a WhatsApp client, or a frame is too long */
  push(chunk: Buffer): Buffer[] {
    this.#buffered = this.#buffered.length === 0 ? chunk : Buffer.concat([this.#buffered, chunk])
    if (!this.#introduced && !this.#readIntroduction()) return []
    const frames: Buffer[] = []
    while (this.#buffered.length >= LENGTH_BYTES) {
      const length = this.#buffered.readUIntBE(0, LENGTH_BYTES)
      if (length > this.maxFrameBytes) throw new Error('frame too long')
      if (this.#buffered.length < LENGTH_BYTES + length) break
      frames.push(this.#buffered.subarray(LENGTH_BYTES, LENGTH_BYTES + length))
      this.#buffered = this.#buffered.subarray(LENGTH_BYTES + length)
    }
    return frames
  }

  #readIntroduction(): boolean {
    const data = this.#buffered
    if (data.length < ROUTING_MARK.length) return false
    let at = 0
    if (data.subarray(0, ROUTING_MARK.length).equals(ROUTING_MARK)) {
      if (data.length < ROUTING_MARK.length + LENGTH_BYTES) return false
      const length = data.readUIntBE(ROUTING_MARK.length, LENGTH_BYTES)
      if (length > this.maxFrameBytes) throw new Error('routing information too long')
      at = ROUTING_MARK.length + LENGTH_BYTES + length
    }
    if (data.length < at + PROLOGUE.length) return false
    if (!data.subarray(at, at + PROLOGUE.length).equals(PROLOGUE)) throw new Error('not a WhatsApp client')
    this.#buffered = data.subarray(at + PROLOGUE.length)
    this.#introduced = true
    return true
  }
}
