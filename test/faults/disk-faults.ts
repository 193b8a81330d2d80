import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../until.ts'
import { type Fault, type StrikeContext, underLoad } from './fault.ts'

const RECOVERS_WITHIN_MS = 15_000
const REFUSED_WITHIN_MS = 10_000
const POLL_EVERY_MS = 50
const FULL_MS = [3_000, 8_000] as const
/** The range of the remaining space, so that the disk becomes full during an operation. */
const ROOM_BYTES = [4_096, 262_144] as const

/**
 * Makes the system refuse writes beyond `bytes` of a file (RLIMIT_FSIZE), like a full disk. With 0 it refuses every write, like
 * a read-only disk. Works for any user on a running process.
 */
function limitFiles(pid: number, bytes: number | 'unlimited'): void {
  execFileSync('prlimit', [`--pid=${pid}`, `--fsize=${bytes}:unlimited`])
}

function refused(name: string, limitOf: (context: StrikeContext) => number): Fault {
  return underLoad({
    name,
    store: 'sqlite',
    recoversWithinMs: RECOVERS_WITHIN_MS,
    arrange: () => ({
      strike: async context => {
        const { harness, random, say } = context
        const { pid } = harness.service
        if (pid === undefined) throw new Error('The service is not running.')
        limitFiles(pid, limitOf(context))
        try {
          const { status, retryAfter } = await untilRefused(context)
          say(`answers ${status}, Retry-After: ${retryAfter}`)
          if (retryAfter === null) throw new Error('A refusal without Retry-After.')
          const statuses = await pollReadiness(random.between(...FULL_MS), context)
          say(`${statuses.length} statuses meanwhile`)
          if (statuses.length === 0 || statuses.some(answer => answer !== 503))
            throw new Error(`Not 503 throughout: ${statuses.join(' ')}`)
        } finally {
          limitFiles(pid, 'unlimited')
        }
      },
    }),
  })
}

/** Waits until the service reports that it is not ready, instead of ending or hanging. */
async function untilRefused({ harness }: StrikeContext): Promise<{ status: number; retryAfter: string | null }> {
  return until(
    'a refusal',
    async () => {
      const answer = await fetch(`${harness.service.url}/readyz`, { signal: AbortSignal.timeout(REFUSED_WITHIN_MS) })
      await answer.text()
      return answer.status === 503 ? { status: answer.status, retryAfter: answer.headers.get('retry-after') } : null
    },
    REFUSED_WITHIN_MS,
  )
}

/** Polls `/readyz` for `ms`. @returns the status codes */
async function pollReadiness(ms: number, { harness }: StrikeContext): Promise<number[]> {
  const statuses: number[] = []
  for (const begunAt = performance.now(); performance.now() - begunAt < ms; ) {
    const answer = await fetch(`${harness.service.url}/readyz`, { signal: AbortSignal.timeout(REFUSED_WITHIN_MS) })
    await answer.text()
    statuses.push(answer.status)
    await sleep(POLL_EVERY_MS)
  }
  return statuses
}

function sizeOfLog({ harness }: StrikeContext): number {
  return statSync(join(harness.service.dataDir, 'pombal.db-wal')).size
}

export const DISK_FAULTS: readonly Fault[] = [
  refused('disk full', context => Math.round(sizeOfLog(context) + context.random.between(...ROOM_BYTES))),
  refused('disk read-only', () => 0),
]
