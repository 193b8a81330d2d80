import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../until.ts'
import { type Fault, type Scene, underLoad } from './fault.ts'

const RECOVERS_WITHIN_MS = 15_000
const REFUSED_WITHIN_MS = 10_000
const POLL_EVERY_MS = 50
const FULL_MS = [3_000, 8_000] as const
/** What still fits, so that the disk is full in the middle of something. */
const ROOM_BYTES = [4_096, 262_144] as const

/**
 * The system refuses what would make a file larger than `bytes` (RLIMIT_FSIZE), as a full disk does; 0: every write to
 * a file, as a disk does that has become read-only. Works for any user, on a process that runs.
 */
function limitFiles(pid: number, bytes: number | 'unlimited'): void {
  execFileSync('prlimit', [`--pid=${pid}`, `--fsize=${bytes}:unlimited`])
}

function refused(name: string, limitOf: (scene: Scene) => number): Fault {
  return underLoad({
    name,
    store: 'sqlite',
    recoversWithinMs: RECOVERS_WITHIN_MS,
    arrange: () => ({
      strike: async scene => {
        const { stage, random, say } = scene
        const { pid } = stage.service
        if (pid === undefined) throw new Error('The service is not running.')
        limitFiles(pid, limitOf(scene))
        try {
          const { status, retryAfter } = await untilRefused(scene)
          say(`answers ${status}, Retry-After: ${retryAfter}`)
          if (retryAfter === null) throw new Error('A refusal without Retry-After.')
          const looks = await lookFor(random.between(...FULL_MS), scene)
          say(`${looks.length} looks meanwhile`)
          if (looks.length === 0 || looks.some(answer => answer !== 503))
            throw new Error(`Not 503 throughout: ${looks.join(' ')}`)
        } finally {
          limitFiles(pid, 'unlimited')
        }
      },
    }),
  })
}

/** The service says that it is not ready, instead of ending or hanging. */
async function untilRefused({ stage }: Scene): Promise<{ status: number; retryAfter: string | null }> {
  return until(
    'a refusal',
    async () => {
      const answer = await fetch(`${stage.service.url}/readyz`, { signal: AbortSignal.timeout(REFUSED_WITHIN_MS) })
      await answer.text()
      return answer.status === 503 ? { status: answer.status, retryAfter: answer.headers.get('retry-after') } : null
    },
    REFUSED_WITHIN_MS,
  )
}

/** What the service says of itself while the fault lasts. */
async function lookFor(ms: number, { stage }: Scene): Promise<number[]> {
  const looks: number[] = []
  for (const begunAt = performance.now(); performance.now() - begunAt < ms; ) {
    const answer = await fetch(`${stage.service.url}/readyz`, { signal: AbortSignal.timeout(REFUSED_WITHIN_MS) })
    await answer.text()
    looks.push(answer.status)
    await sleep(POLL_EVERY_MS)
  }
  return looks
}

function sizeOfLog({ stage }: Scene): number {
  return statSync(join(stage.service.dataDir, 'pombal.db-wal')).size
}

export const FAULTS_OF_DISKS: readonly Fault[] = [
  refused('disk full', scene => Math.round(sizeOfLog(scene) + scene.random.between(...ROOM_BYTES))),
  refused('disk read-only', () => 0),
]
