import { lookup as systemLookup } from 'node:dns/promises'
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
  lookup?: Lookup
}

const TIMEOUT_MS = 5_000
/** Within this age an answer is used again; long enough for a burst, short enough for a consumer that moves. */
const FRESH_MS = 5_000
/** An answer of this age still serves while the name server is silent. */
const STALE_MS = 600_000
const MAX_NAMES = 1_000
const MAX_IN_FLIGHT = 24

interface KnownName {
  addresses: readonly ResolvedAddress[]
  readAt: number
}

/**
 * The system's look-up (so that /etc/hosts and search domains hold), made safe against name servers that hang: a look-up
 * cannot be called off and holds a thread until it ends, so a name has at most one under way, only `maxInFlight` run
 * at once, and nobody waits longer than 5 s. Names that answered before are answered from memory meanwhile.
 */
export function createResolver(options: ResolverOptions = {}): Lookup {
  const { clock = systemClock, maxInFlight = MAX_IN_FLIGHT } = options
  const lookup = options.lookup ?? (hostname => systemLookup(hostname, { all: true }))
  const known = new Map<string, KnownName>()
  const underWay = new Map<string, Promise<readonly ResolvedAddress[]>>()
  const waiting: (() => void)[] = []
  let inFlight = 0

  async function thread(): Promise<void> {
    if (inFlight >= maxInFlight) await new Promise<void>(resolve => waiting.push(resolve))
    else inFlight += 1
  }

  function passOn(): void {
    const next = waiting.shift()
    if (next) next()
    else inFlight -= 1
  }

  function remember(hostname: string, addresses: readonly ResolvedAddress[]): void {
    known.delete(hostname)
    known.set(hostname, { addresses, readAt: clock.steady() })
    for (const oldest of known.keys()) {
      if (known.size <= MAX_NAMES) break
      known.delete(oldest)
    }
  }

  async function ask(hostname: string): Promise<readonly ResolvedAddress[]> {
    await thread()
    try {
      const addresses = await lookup(hostname)
      remember(hostname, addresses)
      return addresses
    } finally {
      underWay.delete(hostname)
      passOn()
    }
  }

  function inTime(hostname: string, answer: Promise<readonly ResolvedAddress[]>): ReturnType<Lookup> {
    return new Promise((resolve, reject) => {
      const cancel = clock.after(TIMEOUT_MS, () => {
        const old = known.get(hostname)
        if (old && clock.steady() - old.readAt < STALE_MS) resolve(old.addresses)
        else reject(new LookupTimedOut(`The look-up of ${hostname} did not end within ${TIMEOUT_MS} ms.`))
      })
      answer.then(resolve, reject).finally(cancel)
    })
  }

  return hostname => {
    const old = known.get(hostname)
    if (old && clock.steady() - old.readAt < FRESH_MS) return Promise.resolve(old.addresses)
    const answer = underWay.get(hostname) ?? ask(hostname)
    if (!underWay.has(hostname)) underWay.set(hostname, answer)
    return inTime(hostname, answer)
  }
}
