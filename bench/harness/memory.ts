import { setTimeout as sleep } from 'node:timers/promises'
import { residentMb } from './service.ts'

/** Node arguments for a process whose memory is measured. */
export const GC_ARGUMENTS = ['--expose-gc', '--import', import.meta.resolve('../processes/gc-on-signal.ts')]
const COLLECTIONS = 3
const SETTLE_MS = 3_000

/** Resident memory of a process started with `GC_ARGUMENTS`, once it has collected its garbage. */
export async function settledMb(pid: number): Promise<number> {
  for (let collections = 0; collections < COLLECTIONS; collections += 1) {
    await sleep(SETTLE_MS / COLLECTIONS)
    process.kill(pid, 'SIGUSR2')
  }
  await sleep(SETTLE_MS)
  return residentMb(pid)
}
