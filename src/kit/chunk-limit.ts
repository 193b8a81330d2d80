import { finished, type Readable, Transform } from 'node:stream'

/** Any number of chunks is accepted if they are at least this large on average. */
const SMALL_BYTES = 64
/** Up to this many chunks may be smaller. */
const MAX_SMALL = 1_000

/** Whether data arrives in so many small chunks that handling the chunks costs more than the data. */
export function areChunksTooSmall(count: number, bytes: number): boolean {
  return count > MAX_SMALL && bytes < count * SMALL_BYTES
}

/**
 * Passes the bytes of a stream on. Fails with `refusal` if they arrive in too many small chunks, and with the error of `source`
 * if that ends early; does not close `source`. Must be the only reader: `for await` over `source` itself joins the chunks that wait.
 */
export function refuseSmallChunks(source: Readable, refusal: () => Error): Readable {
  let count = 0
  let bytes = 0
  const passedOn = new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      count += 1
      bytes += chunk.length
      if (areChunksTooSmall(count, bytes)) done(refusal())
      else done(null, chunk)
    },
  })
  // The reader gets the error, even if it begins to read later.
  passedOn.on('error', () => undefined)
  finished(source, { writable: false }, error => error && passedOn.destroy(error))
  return source.pipe(passedOn)
}
