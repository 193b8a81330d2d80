import { crc32, deflateRawSync, deflateSync, constants as zlib } from 'node:zlib'

const MIB = 1_048_576
const START = Buffer.from('89504e470d0a1a0a', 'hex')
/** Deflate, without a dictionary. */
const ZLIB_HEADER = Buffer.from('7801', 'hex')
/** Colour and transparency. */
const RGBA = 6

export interface PngOptions {
  bits?: 8 | 16
  isInterlaced?: boolean
  /** How many bytes the pixels have when they are unpacked; the rest of the picture is missing. */
  unpacked: number
}

/** A black PNG of a few kilobytes, of any size. */
export function hugePng(
  width: number,
  height: number,
  { bits = 8, isInterlaced = false, unpacked }: PngOptions,
): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width)
  header.writeUInt32BE(height, 4)
  header.set([bits, RGBA, 0, 0, isInterlaced ? 1 : 0], 8)
  // Each of these blocks can be unpacked by itself.
  const block = deflateRawSync(Buffer.alloc(MIB), { finishFlush: zlib.Z_FULL_FLUSH })
  const pixels = Buffer.concat([ZLIB_HEADER, ...Array(Math.ceil(unpacked / MIB)).fill(block)])
  return Buffer.concat([START, chunk('IHDR', header), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))])
}

/** A PNG whose animation has this many frames, all of which are the first one. */
export function animatedPng(frames: number): Buffer {
  const [width, height] = [10, 10]
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width)
  header.writeUInt32BE(height, 4)
  header.set([8, RGBA], 8)
  const control = Buffer.alloc(8)
  control.writeUInt32BE(frames)
  const pixels = deflateSync(Buffer.alloc((width * 4 + 1) * height))
  return Buffer.concat([
    START,
    chunk('IHDR', header),
    chunk('acTL', control),
    chunk('IDAT', pixels),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(named))
  return Buffer.concat([length, named, sum])
}
