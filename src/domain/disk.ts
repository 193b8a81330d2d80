const FREE_SHARE = 0.1
const FREE_BYTES = 2 * 1024 ** 3

export interface DiskSpace {
  freeBytes: number
  totalBytes: number
  isNearlyFull: boolean
}

/** Whether people should free up space before the service has to refuse messages. */
export function isDiskNearlyFull(freeBytes: number, totalBytes: number): boolean {
  return freeBytes < totalBytes * FREE_SHARE && freeBytes < FREE_BYTES
}
