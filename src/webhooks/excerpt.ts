import type { Readable } from 'node:stream'

const MAX_READ_BYTES = 64 * 1024
const MAX_READ_MS = 2_000
const MAX_KEPT_BYTES = 1024

/**
 * The beginning of an answer's body. Reads at most 64 KiB of it, for at most 2 s; a body that drips, never ends or breaks
 * off gives what came of it. A body read to its end leaves its connection fit for use; any other ends it.
 */
export function readBeginning(body: Readable): Promise<Uint8Array> {
  return new Promise(resolve => {
    const kept: Buffer[] = []
    let keptBytes = 0
    let readBytes = 0
    const finish = () => {
      clearTimeout(timer)
      body.destroy()
      resolve(Buffer.concat(kept))
    }
    const timer = setTimeout(finish, MAX_READ_MS)
    body.on('data', (chunk: Buffer) => {
      const part = chunk.subarray(0, MAX_KEPT_BYTES - keptBytes)
      if (part.length > 0) kept.push(Buffer.from(part))
      keptBytes += part.length
      readBytes += chunk.length
      if (readBytes >= MAX_READ_BYTES) finish()
    })
    body.on('end', finish).on('error', finish).on('close', finish)
  })
}

const decoder = new TextDecoder('utf-8')
const encoder = new TextEncoder()

/** As text that every database takes: valid UTF-8 without U+0000, at most 1 KiB; null for nothing. */
export function excerptOf(bytes: Uint8Array, preface = ''): string | null {
  const text = (preface + decoder.decode(bytes)).replaceAll('\0', '\uFFFD')
  const { read } = encoder.encodeInto(text, new Uint8Array(MAX_KEPT_BYTES))
  return text.slice(0, read) || null
}
