import { lookup as systemLookup } from 'node:dns/promises'
import { BoundedMap } from '../kit/bounded-map.ts'
import type { Clock } from '../kit/clock.ts'
import { systemClock } from '../kit/clock.ts'
import { AttemptFailed } from './attempt-error.ts'

export interface ResolvedAddress {
  address: string
  family: number
}

/** Resolves with all addresses of a name; rejects if there are none. @param owner the instance that asks. Default: none */
export type Lookup = (hostname: string, owner?: string) => Promise<readonly ResolvedAddress[]>

interface ResolverOptions {
  clock?: Clock
  /**
   * Concurrent DNS look-ups, each of which occupies a libuv thread. libuv runs look-ups on at most half of its threads (`bin/pombal.js`), and
   * the resolvers of webhooks, files and proxies together leave some of these free for other look-ups.
   */
  maxInFlight?: number
  /** How many of them are reserved for names that were resolved before. */
  reservedForKnown?: number
  /** How many look-ups of known names, and how many of others, one owner may have. Default: no limit. */
  maxPerOwner?: number
  /** How long a caller waits for a name without an earlier result, in the queue and for its look-up. Default: 5 s. */
  timeoutMs?: number
  lookup?: Lookup
}

const TIMEOUT_MS = 5_000
/** A result is used again for this time: long enough for a burst, short enough for a consumer that moves. */
const FRESH_MS = 5_000
/** A result up to this age is used if the name server does not answer. */
const STALE_MS = 600_000
/** How long to wait for the name server before an old result is used. */
const TIMEOUT_OF_KNOWN_MS = 500
const MAX_NAMES = 1_000
const MAX_IN_FLIGHT = 24
const RESERVED_FOR_KNOWN = 8

interface KnownName {
  addresses: readonly ResolvedAddress[]
  readAt: number
}

/** A DNS look-up that waits for a thread or runs. */
interface PendingLookup {
  hostname: string
  /** Whether the name was resolved before. */
  isKnown: boolean
  /** Callers that have not timed out. */
  callers: number
  /** The owners that requested the name; '' for a caller without an owner. */
  owners: Set<string>
  result: PromiseWithResolvers<readonly ResolvedAddress[]>
}

interface RunningLookup {
  isKnown: boolean
  owner: string
}

/**
 * Resolves names with the system's `getaddrinfo`, which respects /etc/hosts and search domains. A look-up cannot be
 * cancelled and occupies a thread until it ends. To tolerate name servers that hang:
 *
 * - A name has at most one look-up at a time, and at most `maxInFlight` run at once.
 * - Some threads are reserved for names that were resolved before.
 * - One owner uses at most `maxPerOwner` threads for such names, and as many for others. The owner that uses the fewest
 *   gets the next one.
 * - A caller waits at most `timeoutMs`. If an earlier result is known, it is used after 500 ms.
 */
export class Resolver {
  readonly #clock: Clock
  readonly #maxInFlight: number
  readonly #maxUnknownInFlight: number
  readonly #maxPerOwner: number
  readonly #timeoutMs: number
  readonly #lookup: Lookup
  readonly #known = new BoundedMap<string, KnownName>(MAX_NAMES)
  readonly #pending = new Map<string, PendingLookup>()
  /** Pending look-ups without a thread, in order. */
  readonly #waiting = new Set<PendingLookup>()
  readonly #running = new Set<RunningLookup>()

  constructor(options: ResolverOptions = {}) {
    const { clock = systemClock, maxInFlight = MAX_IN_FLIGHT, reservedForKnown = RESERVED_FOR_KNOWN } = options
    this.#clock = clock
    this.#maxInFlight = maxInFlight
    this.#maxUnknownInFlight = maxInFlight - reservedForKnown
    this.#maxPerOwner = options.maxPerOwner ?? maxInFlight
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS
    this.#lookup = options.lookup ?? (hostname => systemLookup(hostname, { all: true }))
  }

  resolve(hostname: string, owner = ''): ReturnType<Lookup> {
    const old = this.#known.get(hostname)
    if (old && this.#ageOf(hostname) < FRESH_MS) return Promise.resolve(old.addresses)
    const entry = this.#pending.get(hostname) ?? this.#enqueue(hostname)
    entry.owners.add(owner)
    this.#startWaiting()
    return this.#withTimeout(entry)
  }

  #ageOf(hostname: string): number {
    const old = this.#known.get(hostname)
    return old === undefined ? Number.POSITIVE_INFINITY : this.#clock.steady() - old.readAt
  }

  #enqueue(hostname: string): PendingLookup {
    const isKnown = this.#known.has(hostname)
    const entry: PendingLookup = { hostname, isKnown, callers: 0, owners: new Set(), result: Promise.withResolvers() }
    // All callers may have timed out.
    entry.result.promise.catch(() => undefined)
    this.#pending.set(hostname, entry)
    this.#waiting.add(entry)
    return entry
  }

  #startWaiting(): void {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      this.#waiting.delete(next.entry)
      void this.#run(next.entry, next.owner)
    }
  }

  /** The next look-up that may start: of the owner with the fewest threads, in order. */
  #next(): { entry: PendingLookup; owner: string } | null {
    const running = [...this.#running]
    if (running.length >= this.#maxInFlight) return null
    const hasUnknown = running.filter(({ isKnown }) => !isKnown).length < this.#maxUnknownInFlight
    let next: { entry: PendingLookup; owner: string } | null = null
    let fewest = this.#maxPerOwner
    for (const entry of this.#waiting) {
      for (const owner of entry.isKnown || hasUnknown ? entry.owners : []) {
        const own = running.filter(other => other.owner === owner && other.isKnown === entry.isKnown).length
        if (own < fewest) {
          next = { entry, owner }
          fewest = own
        }
      }
      if (fewest === 0) break
    }
    return next
  }

  async #run({ hostname, isKnown, result }: PendingLookup, owner: string): Promise<void> {
    const running = { isKnown, owner }
    this.#running.add(running)
    try {
      const addresses = await this.#lookup(hostname)
      this.#known.set(hostname, { addresses, readAt: this.#clock.steady() })
      result.resolve(addresses)
    } catch (error) {
      result.reject(error)
    } finally {
      this.#pending.delete(hostname)
      this.#running.delete(running)
      this.#startWaiting()
    }
  }

  /** Cancels the look-up if no caller is left and it has no thread yet. */
  #leave(entry: PendingLookup): void {
    entry.callers -= 1
    if (entry.callers === 0 && this.#waiting.delete(entry)) this.#pending.delete(entry.hostname)
  }

  #withTimeout(entry: PendingLookup): ReturnType<Lookup> {
    const { hostname, result } = entry
    entry.callers += 1
    return new Promise((resolve, reject) => {
      const timeoutMs = this.#ageOf(hostname) < STALE_MS ? TIMEOUT_OF_KNOWN_MS : this.#timeoutMs
      const cancel = this.#clock.after(timeoutMs, () => {
        const old = this.#known.get(hostname)
        this.#leave(entry)
        if (old && this.#ageOf(hostname) < STALE_MS) resolve(old.addresses)
        else reject(new AttemptFailed('dns_failed', `${hostname} was not resolved within ${this.#timeoutMs} ms.`))
      })
      result.promise.then(resolve, reject).finally(cancel)
    })
  }
}
