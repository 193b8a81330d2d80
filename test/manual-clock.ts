import type { Clock } from '../src/kit/clock.ts'

interface Timer {
  at: number
  task: () => void
}

/** A clock that moves only on command. `jump` moves the wall clock alone. */
export class ManualClock implements Clock {
  #wall = Date.parse('2026-01-01T00:00:00Z')
  #steady = this.#wall
  readonly #timers = new Set<Timer>()

  now(): number {
    return this.#wall
  }

  steady(): number {
    return this.#steady
  }

  after(delayMs: number, task: () => void): () => void {
    const timer = { at: this.#steady + Math.max(0, delayMs), task }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  get timers(): number {
    return this.#timers.size
  }

  jump(ms: number): void {
    this.#wall += ms
  }

  /** Runs the work that is already pending, without advancing the clock. */
  async settle(): Promise<void> {
    await new Promise(resolve => setImmediate(resolve))
  }

  /** Runs all timers that become due, each at its time. */
  async pass(ms: number): Promise<void> {
    const end = this.#steady + ms
    await this.settle()
    for (let next = this.#next(end); next; next = this.#next(end)) {
      this.move(Math.max(this.#steady, next.at))
      this.#timers.delete(next)
      next.task()
      await this.settle()
    }
    this.move(end)
  }

  #next(end: number): Timer | undefined {
    const due = [...this.#timers].filter(({ at }) => at <= end)
    return due.sort((a, b) => a.at - b.at)[0]
  }

  protected move(to: number): void {
    this.#wall += to - this.#steady
    this.#steady = to
  }
}
