import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusal.ts'
import { ChunkLimit } from '../../kit/chunk-limit.ts'

const NONE = Buffer.alloc(0)
/** The time that the rest of a body in too many chunks may take. */
const REST_WITHIN_MS = 1_000

/**
 * Reads a body up to the size limit of its route. Chunks are copied and not kept, because each takes some 300 bytes of memory, even if it
 * contains only one. A caller that sends too many small chunks is disconnected, unless the body ends soon.
 * @param done called once, with a Refusal if the body is too large, has too many small chunks, or ends early
 */
export function readBody(
  { raw, headers, routeOptions: { bodyLimit } }: Pick<FastifyRequest, 'raw' | 'headers' | 'routeOptions'>,
  source: Readable,
  done: (error: Error | null, bytes: Buffer) => void,
): void {
  const chunks = new ChunkLimit()
  let bytes: Buffer = NONE
  let length = 0

  function add(chunk: Buffer): void {
    const needed = length + chunk.length
    if (needed > bodyLimit) end(new Refusal('payload_too_large'))
    else if (chunks.exceeds(chunk.length)) {
      setTimeout(() => raw.complete || raw.socket.destroy(), REST_WITHIN_MS).unref()
      end(new Refusal('payload_too_large', 'The body arrives in too many small chunks.'))
    } else {
      if (length === 0) bytes = chunk
      else {
        if (needed > bytes.length) bytes = Buffer.concat([bytes.subarray(0, length)], Math.max(needed, 2 * length))
        chunk.copy(bytes, length)
      }
      length = needed
    }
  }

  function complete(): void {
    end(null)
  }

  function fail(): void {
    end(new Refusal('invalid_request', 'The body ended early.'))
  }

  function end(error: Error | null): void {
    source.off('data', add).off('end', complete).off('error', fail)
    done(error, bytes.subarray(0, length))
  }

  if (Number(headers['content-length']) > bodyLimit) end(new Refusal('payload_too_large'))
  else source.on('data', add).on('end', complete).on('error', fail)
}
