import type { Clock } from '../src/webhooks/clock.ts'

interface Timer {
  at: number
  task: () => void
}

/** Promises that follow from one another are given so many turns to settle. */
const TURNS = 50

/** A clock that only moves when told to; `jump` moves the wall alone. */
export class ManualClock implements Clock {
  #wall = Date.parse('2026-01-01T00:00:00Z')
  #monotonic = 1_000
  readonly #timers = new Set<Timer>()

  now(): number {
    return this.#wall
  }

  monotonic(): number {
    return this.#monotonic
  }

  after(delayMs: number, task: () => void): () => void {
    const timer = { at: this.#monotonic + Math.max(0, delayMs), task }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  get timers(): number {
    return this.#timers.size
  }

  jump(ms: number): void {
    this.#wall += ms
  }

  /** Lets everything happen that needs no time. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn += 1) await Promise.resolve()
  }

  /** Runs what is due in between, each at its own moment. */
  async pass(ms: number): Promise<void> {
    const end = this.#monotonic + ms
    await this.settle()
    for (let next = this.#next(end); next; next = this.#next(end)) {
      this.#move(Math.max(this.#monotonic, next.at))
      this.#timers.delete(next)
      next.task()
      await this.settle()
    }
    this.#move(end)
  }

  #next(end: number): Timer | undefined {
    const due = [...this.#timers].filter(({ at }) => at <= end)
    return due.sort((a, b) => a.at - b.at)[0]
  }

  #move(to: number): void {
    this.#wall += to - this.#monotonic
    this.#monotonic = to
  }
}
