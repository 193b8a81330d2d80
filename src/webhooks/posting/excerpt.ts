import type { Readable } from 'node:stream'

const MAX_READ_BYTES = 64 * 1024
const MAX_READ_MS = 2_000
const MAX_KEPT_BYTES = 1024

/**
 * The first 1 KiB of a response body, or less if the body ends or fails earlier. Reads at most 64 KiB for at most 2 s. The
 * connection can be used again only if the body was read to its end.
 */
export async function readBeginning(body: Readable): Promise<Uint8Array> {
  const parts: Buffer[] = []
  let keptBytes = 0
  let readBytes = 0
  const timer = setTimeout(() => body.destroy(), MAX_READ_MS)
  try {
    // Leaving the loop early destroys the body.
    for await (const chunk of body as AsyncIterable<Buffer>) {
      const part = Buffer.from(chunk.subarray(0, MAX_KEPT_BYTES - keptBytes))
      parts.push(part)
      keptBytes += part.length
      readBytes += chunk.length
      if (readBytes >= MAX_READ_BYTES) break
    }
  } catch {
    // The body failed or took too long. What has arrived is kept.
  } finally {
    clearTimeout(timer)
  }
  return Buffer.concat(parts)
}

const decoder = new TextDecoder('utf-8')
const encoder = new TextEncoder()
const scratch = new Uint8Array(MAX_KEPT_BYTES)

/** Text that both databases can store: valid UTF-8 without U+0000, at most 1 KiB; null if it is empty. */
export function excerptOf(bytes: Uint8Array, preface = ''): string | null {
  const text = (preface + decoder.decode(bytes)).replaceAll('\0', '\uFFFD')
  const { read } = encoder.encodeInto(text, scratch)
  return text.slice(0, read) || null
}
