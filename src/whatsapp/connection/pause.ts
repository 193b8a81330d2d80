import { pauseBefore, type Situation } from './after-close.ts'

/** The wait before the next socket: longer with every end in a row without a connection that lasted. */
export class Pause {
  #failures = 0
  #restarts = 0
  #timer: NodeJS.Timeout | undefined

  /** How many ends there were since a connection lasted. */
  get inARow(): Pick<Situation, 'failures' | 'restarts'> {
    return { failures: this.#failures, restarts: this.#restarts }
  }

  get isOn(): boolean {
    return this.#timer !== undefined
  }

  /** After a failure. @returns how long it is, in milliseconds */
  begin(slow: boolean, onOver: () => void): number {
    this.#failures += 1
    const pauseMs = pauseBefore(this.#failures, slow, Math.random())
    this.end()
    this.#timer = setTimeout(() => {
      this.end()
      onOver()
    }, pauseMs)
    return pauseMs
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** WhatsApp asked for a new socket: no failure, and no pause. */
  noteRestart(): void {
    this.#restarts += 1
  }

  /** A connection has lasted, or somebody asks for one anew. */
  forget(): void {
    this.#failures = 0
    this.#restarts = 0
  }
}
