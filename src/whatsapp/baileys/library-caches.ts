import type { CacheStore } from 'baileys'
import { BoundedMap } from '../../kit/bounded-map.ts'

const CAPACITY = 2_000

/** The caches that Baileys would create for each socket. These outlive a socket and have no timers. */
export function createLibraryCaches() {
  return { msgRetryCounterCache: createCache(), placeholderResendCache: createCache(), callOfferCache: createCache() }
}

export type LibraryCaches = ReturnType<typeof createLibraryCaches>

function createCache(): CacheStore {
  const entries = new BoundedMap<string, unknown>(CAPACITY)
  return {
    get: <T>(key: string) => entries.get(key) as T | undefined,
    set: (key, value) => void entries.set(key, value),
    del: key => entries.delete(key),
    flushAll: () => entries.clear(),
  }
}
