/**
 * Reads one picture from its standard input and writes its size and thumbnail, as JSON. Started by `Pictures`. The picture may be
 * hostile, so this process has no keys, is the first that the system ends when memory is short, and ends itself when the picture
 * takes too much time or memory.
 */
import { writeFileSync } from 'node:fs'
import sharp from 'sharp'

/** Today's phones take pictures of up to 50 million pixels. */
const MAX_PIXELS = 52_000_000
/** The memory limit of the whole process. A progressive JPEG of 49 million pixels takes 231 MiB. */
const MAX_RESIDENT_BYTES = 320 * 1_048_576
/** Takes effect only if the service has died. Otherwise the service ends this process sooner. */
const MAX_MS = 30_000
const CHECK_EVERY_MS = 10
/** Both sides of the thumbnail. WhatsApp shows it blurred until the picture is downloaded. */
const THUMBNAIL_PIXELS = 100
const THUMBNAIL_QUALITY = 50
/** The formats that are decoded. Never SVG, which is a program. */
const DECODERS = [
  'VipsForeignLoadJpegBuffer',
  'VipsForeignLoadPngBuffer',
  'VipsForeignLoadWebpBuffer',
  'VipsForeignLoadNsgifBuffer',
]

/** A normal exit would wait for the decoder. */
function giveUp(): void {
  process.kill(process.pid, 'SIGKILL')
}

function endFirst(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // This system has no such file.
  }
}

async function read(): Promise<void> {
  sharp.block({ operation: ['VipsForeignLoad'] })
  sharp.unblock({ operation: DECODERS })
  sharp.cache(false)
  sharp.concurrency(1)
  const bytes = Buffer.concat(await process.stdin.toArray())
  const picture = sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'truncated' })
  const { autoOrient, pages = 1 } = await picture.metadata()
  const thumbnail = await picture
    .autoOrient()
    .resize(THUMBNAIL_PIXELS, THUMBNAIL_PIXELS, { fit: 'inside', withoutEnlargement: true })
    .flatten({ background: 'white' })
    .jpeg({ quality: THUMBNAIL_QUALITY })
    .toBuffer()
  const { width, height } = autoOrient
  const isAnimated = pages > 1
  process.stdout.write(JSON.stringify({ width, height, isAnimated, thumbnail: thumbnail.toString('base64') }))
}

setTimeout(giveUp, MAX_MS).unref()
setInterval(() => {
  if (process.memoryUsage.rss() > MAX_RESIDENT_BYTES) giveUp()
}, CHECK_EVERY_MS).unref()
endFirst()
await read()
