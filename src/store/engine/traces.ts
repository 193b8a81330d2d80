import type { Backend } from './backend.ts'

/**
 * Tracks whether the database's files may still contain deleted data. A start begins a new log, so it removes such
 * data.
 */
export class Traces {
  readonly #backend: Backend
  #mayRemain = false

  constructor(backend: Backend) {
    this.#backend = backend
  }

  /** Call it after the commit of a deletion. */
  note(): void {
    this.#mayRemain = true
  }

  async erase(): Promise<void> {
    if (!this.#mayRemain) return
    await this.#backend.eraseTraces?.()
    this.#mayRemain = false
  }
}
