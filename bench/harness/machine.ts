import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { arch, availableParallelism, cpus, loadavg, platform, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { median } from './statistics.ts'

const SYNCS = 200
const PAGE_BYTES = 4096

export interface Machine {
  node: string
  system: string
  processor: string
  cores: number
  memoryGb: number
  /** Load average of the last minute before the run. If above 0, other programs were running. */
  loadBefore: number
  /** Median time to sync 4 KiB that were appended to a file in the folder of the databases. */
  syncMs: number
}

export function describeMachine(): Machine {
  return {
    node: process.version,
    system: `${platform()} ${arch()}`,
    processor: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    loadBefore: loadavg()[0] ?? 0,
    syncMs: measureSync(),
  }
}

/** A lower limit of the time between two commits. */
function measureSync(): number {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-bench-'))
  const file = openSync(join(folder, 'sync'), 'w')
  const page = Buffer.alloc(PAGE_BYTES)
  try {
    const times = Array.from({ length: SYNCS }, () => {
      writeSync(file, page)
      const startedAt = performance.now()
      fsyncSync(file)
      return performance.now() - startedAt
    })
    return median(times)
  } finally {
    closeSync(file)
    rmSync(folder, { recursive: true })
  }
}
