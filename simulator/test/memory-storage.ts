import type { NetworkStorage, StorageChange } from '@pombal/simulator'

/** A storage in memory that outlives simulators and can fail. */
export class MemoryStorage implements NetworkStorage {
  readonly scopes: Map<string, Map<string, Uint8Array>>
  writes = 0
  /** While set, writes fail. */
  broken = false

  constructor(scopes = new Map<string, Map<string, Uint8Array>>()) {
    this.scopes = scopes
  }

  async read(scope: string): Promise<ReadonlyMap<string, Uint8Array>> {
    return new Map(this.scopes.get(scope))
  }

  async write(scope: string, changes: readonly StorageChange[]): Promise<void> {
    await new Promise(resolve => setImmediate(resolve))
    if (this.broken) throw new Error('the storage is broken')
    this.writes++
    const records = this.scopes.get(scope) ?? new Map<string, Uint8Array>()
    for (const { key, value } of changes) {
      if (value === null) records.delete(key)
      else records.set(key, value)
    }
    if (records.size > 0) this.scopes.set(scope, records)
    else this.scopes.delete(scope)
  }

  /** The state that a process finds if it starts after this one was killed. */
  afterKill(): MemoryStorage {
    return new MemoryStorage(new Map(Array.from(this.scopes, ([scope, records]) => [scope, new Map(records)])))
  }
}
