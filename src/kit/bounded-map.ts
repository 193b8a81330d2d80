/**
 * A cache of Baileys' that outlives a socket. The oldest entries go when it is full; nothing expires, so that it needs
 * no timer.
 */
export class MemoryCache {
  readonly #entries = new Map<string, unknown>()
  readonly #capacity: number

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get<T>(key: string): T | undefined {
    return this.#entries.get(key) as T | undefined
  }

  set<T>(key: string, value: T): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size <= this.#capacity) return
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined) this.#entries.delete(oldest)
  }

  has(key: string): boolean {
    return this.#entries.has(key)
  }

  del(key: string): void {
    this.#entries.delete(key)
  }

  flushAll(): void {
    this.#entries.clear()
  }
}
