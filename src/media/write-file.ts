import type { FileName, MediaRows } from '../store/media/media.ts'
import type { MediaStorage } from './storage/storage.ts'

const EXTEND_EVERY_MS = 60_000

/** The name of a file in the storage. */
export function nameOf({ instanceId, fileId }: FileName): string {
  return `${instanceId}/${fileId}`
}

/** Writes a file that was announced, and keeps it from being given up meanwhile. */
export async function writeFile(
  rows: Pick<MediaRows, 'extend'>,
  storage: MediaStorage,
  file: FileName,
  bytes: AsyncIterable<Uint8Array>,
): Promise<void> {
  // If the row cannot be extended, the commit that follows finds out.
  const timer = setInterval(() => void rows.extend(file).catch(() => undefined), EXTEND_EVERY_MS)
  try {
    await storage.write(nameOf(file), bytes)
  } finally {
    clearInterval(timer)
  }
}
