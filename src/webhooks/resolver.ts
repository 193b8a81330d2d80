import { lookup as systemLookup } from 'node:dns/promises'
import { BoundedMap } from '../kit/bounded-map.ts'
import type { Clock } from './clock.ts'
import { systemClock } from './clock.ts'

export interface ResolvedAddress {
  address: string
  family: number
}

/** All addresses of a name; rejects when there are none. */
export type Lookup = (hostname: string) => Promise<readonly ResolvedAddress[]>

/** A name's look-up did not end in time. */
export class LookupTimedOut extends Error {
  override readonly name = 'LookupTimedOut'
  readonly code = 'LOOKUP_TIMED_OUT'
}

export interface ResolverOptions {
  clock?: Clock
  /** Look-ups that may occupy a thread of libuv's pool at once; by default fewer than the 32 that bin/pombal.js asks for. */
  maxInFlight?: number
  /** So many of those are kept for names that answered before. */
  keptForKnown?: number
  lookup?: Lookup
}

const TIMEOUT_MS = 5_000
/** Within this age an answer is used again; long enough for a burst, short enough for a consumer that moves. */
const FRESH_MS = 5_000
/** An answer of this age still serves while the name server is silent. */
const STALE_MS = 600_000
/** How long a name that answered before is waited for until its last answer serves. */
const PATIENCE_WITH_KNOWN_MS = 500
const MAX_NAMES = 1_000
const MAX_IN_FLIGHT = 24
const KEPT_FOR_KNOWN = 8

interface KnownName {
  addresses: readonly ResolvedAddress[]
  readAt: number
}

/** A look-up that waits for a thread, or occupies one. */
interface Look {
  hostname: string
  /** Its name answered before. */
  isKnown: boolean
  /** Those who have not given up on it. */
  callers: number
  answer: PromiseWithResolvers<readonly ResolvedAddress[]>
}

/**
 * The system's look-up (so that /etc/hosts and search domains hold), made safe against name servers that hang: a look-up
 * cannot be called off and holds a thread until it ends, so a name has at most one under way, only `maxInFlight` run at
 * once, and nobody waits longer than 5 s. Names that never answered, however many hang, leave threads to those that did,
 * which besides are answered from memory while their name server is silent.
 */
export function createResolver(options: ResolverOptions = {}): Lookup {
  const { clock = systemClock, maxInFlight = MAX_IN_FLIGHT, keptForKnown = KEPT_FOR_KNOWN } = options
  const lookup = options.lookup ?? (hostname => systemLookup(hostname, { all: true }))
  const known = new BoundedMap<string, KnownName>(MAX_NAMES)
  const underWay = new Map<string, Look>()
  /** Those of them that have no thread yet, in turn. */
  const waiting = new Set<Look>()
  let inFlight = 0
  let strangersInFlight = 0

  function remember(hostname: string, addresses: readonly ResolvedAddress[]): void {
    known.set(hostname, { addresses, readAt: clock.steady() })
  }

  function ageOf(hostname: string): number {
    const old = known.get(hostname)
    return old === undefined ? Number.POSITIVE_INFINITY : clock.steady() - old.readAt
  }

  function enqueue(hostname: string): Look {
    const look: Look = { hostname, isKnown: known.has(hostname), callers: 0, answer: Promise.withResolvers() }
    // Its callers may all have given up.
    look.answer.promise.catch(() => undefined)
    underWay.set(hostname, look)
    waiting.add(look)
    startWhatCan()
    return look
  }

  function startWhatCan(): void {
    for (const look of waiting) {
      if (inFlight >= maxInFlight) return
      if (!look.isKnown && strangersInFlight >= maxInFlight - keptForKnown) continue
      waiting.delete(look)
      void run(look)
    }
  }

  async function run({ hostname, isKnown, answer }: Look): Promise<void> {
    inFlight += 1
    if (!isKnown) strangersInFlight += 1
    try {
      const addresses = await lookup(hostname)
      remember(hostname, addresses)
      answer.resolve(addresses)
    } catch (error) {
      answer.reject(error)
    } finally {
      underWay.delete(hostname)
      inFlight -= 1
      if (!isKnown) strangersInFlight -= 1
      startWhatCan()
    }
  }

  /** Nobody waits for it any more: it need not take a thread. */
  function leave(look: Look): void {
    look.callers -= 1
    if (look.callers === 0 && waiting.delete(look)) underWay.delete(look.hostname)
  }

  function inTime(look: Look): ReturnType<Lookup> {
    const { hostname, answer } = look
    look.callers += 1
    return new Promise((resolve, reject) => {
      const cancel = clock.after(ageOf(hostname) < STALE_MS ? PATIENCE_WITH_KNOWN_MS : TIMEOUT_MS, () => {
        const old = known.get(hostname)
        leave(look)
        if (old && ageOf(hostname) < STALE_MS) resolve(old.addresses)
        else reject(new LookupTimedOut(`The look-up of ${hostname} did not end within ${TIMEOUT_MS} ms.`))
      })
      answer.promise.then(resolve, reject).finally(cancel)
    })
  }

  return hostname => {
    const old = known.get(hostname)
    if (old && ageOf(hostname) < FRESH_MS) return Promise.resolve(old.addresses)
    return inTime(underWay.get(hostname) ?? enqueue(hostname))
  }
}
