import type { Backend } from './backend.ts'

/** Whether the database's files may still hold what was deleted. A start takes it out of them, too: it begins a new log. */
export class Traces {
  readonly #backend: Backend
  #left = false

  constructor(backend: Backend) {
    this.#backend = backend
  }

  /** Something was deleted, and is committed. */
  note(): void {
    this.#left = true
  }

  async erase(): Promise<void> {
    if (!this.#left) return
    await this.#backend.eraseTraces?.()
    this.#left = false
  }
}
