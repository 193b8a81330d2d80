import { execFileSync } from 'node:child_process'

/** The time that a process gets to collect its garbage before its memory is read. */
const COLLECTING_MS = 400
const MINUTE_MS = 60_000

export interface Sample {
  /** Since the sampler was created. */
  atMs: number
  residentMb: number
}

/** Node options for the sampled process: it collects its garbage on SIGUSR2. */
export const SAMPLED_NODE_OPTIONS = [
  '--expose-gc',
  '--import',
  import.meta.resolve('../../bench/processes/gc-on-signal.ts'),
]

/** Samples the resident memory of a process that was started with `SAMPLED_NODE_OPTIONS`. */
export class MemorySampler {
  readonly samples: Sample[] = []
  readonly #pid: number
  readonly #startedAt = performance.now()
  readonly #timer: NodeJS.Timeout
  #collecting: NodeJS.Timeout | undefined

  constructor(pid: number, everyMs: number) {
    this.#pid = pid
    this.#timer = setInterval(() => this.#sample(), everyMs)
    this.#sample()
  }

  get latest(): number {
    return this.samples.at(-1)?.residentMb ?? 0
  }

  stop(): void {
    clearInterval(this.#timer)
    clearTimeout(this.#collecting)
  }

  #sample(): void {
    process.kill(this.#pid, 'SIGUSR2')
    this.#collecting = setTimeout(() => {
      const residentKb = execFileSync('ps', ['-o', 'rss=', '-p', this.#pid.toString()], { encoding: 'utf8' })
      this.samples.push({ atMs: performance.now() - this.#startedAt, residentMb: Number(residentKb) / 1024 })
    }, COLLECTING_MS)
  }
}

/** The growth of the memory in MB per minute, by linear regression. NaN for fewer than two samples. */
export function slopeOf(samples: readonly Sample[]): number {
  const meanAt = mean(samples.map(({ atMs }) => atMs))
  const meanMb = mean(samples.map(({ residentMb }) => residentMb))
  let products = 0
  let squares = 0
  for (const { atMs, residentMb } of samples) {
    products += (atMs - meanAt) * (residentMb - meanMb)
    squares += (atMs - meanAt) ** 2
  }
  return (products / squares) * MINUTE_MS
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
