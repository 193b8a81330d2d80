import { execFileSync } from 'node:child_process'

/** So long a process is given to collect its garbage before it is weighed. */
const COLLECTING_MS = 400
const MINUTE_MS = 60_000

export interface Sample {
  /** Since the first one. */
  atMs: number
  residentMb: number
}

/** Loaded into the process that is weighed: it collects its garbage when told to. */
export const WEIGHED_NODE_OPTIONS = [
  '--expose-gc',
  '--import',
  import.meta.resolve('../../bench/processes/gc-on-signal.ts'),
]

/** Weighs a process, started with `WEIGHED_NODE_OPTIONS`, now and then. */
export class Scales {
  readonly samples: Sample[] = []
  readonly #pid: number
  readonly #startedAt = performance.now()
  readonly #timer: NodeJS.Timeout
  #collecting: NodeJS.Timeout | undefined

  constructor(pid: number, everyMs: number) {
    this.#pid = pid
    this.#timer = setInterval(() => this.#weigh(), everyMs)
    this.#weigh()
  }

  get latest(): number {
    return this.samples.at(-1)?.residentMb ?? 0
  }

  stop(): void {
    clearInterval(this.#timer)
    clearTimeout(this.#collecting)
  }

  #weigh(): void {
    process.kill(this.#pid, 'SIGUSR2')
    this.#collecting = setTimeout(() => {
      const residentKb = execFileSync('ps', ['-o', 'rss=', '-p', this.#pid.toString()], { encoding: 'utf8' })
      this.samples.push({ atMs: performance.now() - this.#startedAt, residentMb: Number(residentKb) / 1024 })
    }, COLLECTING_MS)
  }
}

/** How steeply the memory grows, in MB per minute: the line that fits the samples best. Not a number below two of them. */
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
