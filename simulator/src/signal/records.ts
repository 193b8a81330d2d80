import type { NetworkStorage, StorageChange } from '../types.ts'

/**
 * The records of one scope, and how they reach the storage.
 *
 * An event puts and drops records, which are then `staged`. When the event has ended, `seal` turns its changes into one
 * unit. `commit` writes all sealed units, several together if an earlier write is under way, and never part of a unit.
 * After a failed write its records stay pending and are written by the next commit, unless a newer value has replaced
 * them.
 */
export class Records {
  readonly #storage: NetworkStorage | null
  readonly #scope: string
  #staged = new Map<string, string | null>()
  #sealed = new Map<string, string | null>()
  /** The newest write that has begun. */
  #last: Promise<void> = Promise.resolve()
  /** The write that will begin when `#last` has ended. */
  #next: Promise<void> | null = null

  constructor(storage: NetworkStorage | null, scope: string) {
    this.#storage = storage
    this.#scope = scope
  }

  async load(): Promise<Map<string, string>> {
    const loaded = new Map<string, string>()
    if (!this.#storage) return loaded
    for (const [key, value] of await this.#storage.read(this.#scope)) loaded.set(key, Buffer.from(value).toString())
    return loaded
  }

  /** Calls `encode` at once, or never: without a storage nothing is written. */
  put(key: string, encode: () => string): void {
    if (this.#storage) this.#staged.set(key, encode())
  }

  drop(key: string): void {
    if (this.#storage) this.#staged.set(key, null)
  }

  seal(): void {
    for (const [key, value] of this.#staged) this.#sealed.set(key, value)
    this.#staged.clear()
  }

  /** Resolves when everything sealed before this call is durable. Rejects if the storage failed. */
  commit(): Promise<void> {
    if (!this.#storage) return Promise.resolve()
    if (this.#sealed.size === 0) return this.#last
    this.#next ??= this.#writeAfter(this.#last)
    return this.#next
  }

  async #writeAfter(previous: Promise<void>): Promise<void> {
    await previous.catch(() => undefined)
    this.#last = this.#next!
    this.#next = null
    await this.#write()
  }

  async #write(): Promise<void> {
    const due = this.#sealed
    this.#sealed = new Map()
    const changes: StorageChange[] = []
    for (const [key, value] of due) changes.push({ key, value: value === null ? null : Buffer.from(value) })
    try {
      await this.#storage?.write(this.#scope, changes)
    } catch (error) {
      for (const [key, value] of this.#sealed) due.set(key, value)
      this.#sealed = due
      throw error
    }
  }
}
