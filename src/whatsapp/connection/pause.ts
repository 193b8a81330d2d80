import { pauseBefore, type Situation } from './after-close.ts'

/** The backoff before the next socket. It grows with every failure, until a connection has lasted. */
export class Pause {
  #failures = 0
  #restarts = 0
  #timer: NodeJS.Timeout | undefined

  /** The failures and restarts since the last call of `forget`. */
  get inARow(): Pick<Situation, 'failures' | 'restarts'> {
    return { failures: this.#failures, restarts: this.#restarts }
  }

  get isOn(): boolean {
    return this.#timer !== undefined
  }

  /**
   * Starts the pause after a failure. `work` follows it as a step, unless `end` was called before that step runs.
   * @returns the length of the pause in milliseconds
   */
  begin(slow: boolean, runStep: (step: () => Promise<void>) => void, work: () => Promise<void>): number {
    this.#failures += 1
    const pauseMs = pauseBefore(this.#failures, slow, Math.random())
    this.end()
    const step = async () => {
      if (timer !== this.#timer) return
      this.end()
      await work()
    }
    const timer = setTimeout(() => runStep(step), pauseMs)
    this.#timer = timer
    return pauseMs
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** WhatsApp asked for a new socket. This is not a failure and needs no pause. */
  noteRestart(): void {
    this.#restarts += 1
  }

  /** Call when a connection has lasted, or when somebody requests a new one. */
  forget(): void {
    this.#failures = 0
    this.#restarts = 0
  }
}
