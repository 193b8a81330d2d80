import { withDeadline } from '../../kit/deadline.ts'
import { Turns } from '../../kit/turns.ts'

const NEVER = new AbortController().signal

/**
 * Limits the calls to a file system, each of which occupies a libuv thread until it ends. On a network folder whose server is gone a
 * call may hang for ever. It keeps its turn, so such a folder leaves the other threads to SQLite and to look-ups of names.
 */
export class FileCalls {
  readonly #turns: Turns
  readonly #timeoutMs: number

  /** @param timeoutMs the longest time of a call, including the wait for its turn */
  constructor(atOnce: number, timeoutMs: number) {
    this.#turns = new Turns(atOnce)
    this.#timeoutMs = timeoutMs
  }

  /** @param undo for a result that comes too late. @throws Error after the longest time; otherwise the error of `call` */
  async run<T>(call: () => Promise<T>, undo?: (late: T) => Promise<unknown>): Promise<T> {
    const over = new AbortController()
    return withDeadline(this.#timeoutMs, this.#inTurn(call, over.signal, undo)).finally(() => over.abort())
  }

  /** For what must be done however long it takes. */
  async runWithoutLimit<T>(call: () => Promise<T>): Promise<T> {
    return this.#inTurn(call, NEVER)
  }

  async #inTurn<T>(call: () => Promise<T>, over: AbortSignal, undo?: (late: T) => Promise<unknown>): Promise<T> {
    if (!(await this.#turns.take(over))) throw new Error('Too many earlier calls have no answer.')
    try {
      const result = await call()
      if (over.aborted) await undo?.(result)
      return result
    } finally {
      this.#turns.end()
    }
  }
}
