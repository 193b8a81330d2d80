import { statfs } from 'node:fs/promises'

/** Below this share and this amount, or below the second amount alone, the disk is nearly full. */
const FEW = { share: 0.1, bytes: 5 * 1024 ** 3, always: 512 * 1024 ** 2 }

export interface DiskSpace {
  freeBytes: number
  totalBytes: number
  isNearlyFull: boolean
}

/** The space of the disk that holds `dir`, as far as this process may use it. Null if the system does not report it. */
export async function readDiskSpace(dir: string): Promise<DiskSpace | null> {
  const found = await statfs(dir).catch(() => null)
  if (found === null || found.blocks === 0) return null
  return diskSpace(found.bavail * found.bsize, found.blocks * found.bsize)
}

export function diskSpace(freeBytes: number, totalBytes: number): DiskSpace {
  const isLow = freeBytes < FEW.bytes && freeBytes < totalBytes * FEW.share
  return { freeBytes, totalBytes, isNearlyFull: isLow || freeBytes < FEW.always }
}
