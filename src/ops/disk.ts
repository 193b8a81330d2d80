import { statfs } from 'node:fs/promises'
import { type DiskSpace, isDiskNearlyFull } from '../domain/disk.ts'

/** The space of the disk that holds `dir`, as far as this process may use it. Null if the system does not report it. */
export async function readDiskSpace(dir: string): Promise<DiskSpace | null> {
  const found = await statfs(dir).catch(() => null)
  if (found === null || found.blocks === 0) return null
  const freeBytes = found.bavail * found.bsize
  const totalBytes = found.blocks * found.bsize
  return { freeBytes, totalBytes, isNearlyFull: isDiskNearlyFull(freeBytes, totalBytes) }
}
