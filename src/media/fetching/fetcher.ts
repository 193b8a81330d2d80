import type { Logger } from 'pino'
import { Refusal } from '../../domain/refusal.ts'
import { backoffMs } from '../../kit/backoff.ts'
import type { AddressGuard } from '../../outbound/address-guard.ts'
import { createConnector } from '../../outbound/connector.ts'
import { type Lookup, Resolver } from '../../outbound/resolver.ts'
import { type Fetch, type FetchFailure, LONGEST_FETCH_PAUSE_MS } from '../../store/media/fetches.ts'
import type { Store } from '../../store/store.ts'
import { untilStored } from '../../store/until-stored.ts'
import type { FileReceiver } from '../file-receiver.ts'
import { refuseLarge } from '../intake.ts'
import { FetchFailed, openUrl } from './open-url.ts'
import { Places } from './places.ts'

/** The longest time of one attempt. */
const ATTEMPT_MS = 60_000
const EXTEND_EVERY_MS = 2_500
const FIRST_PAUSE_MS = 1_000
/** About two and a half minutes, if every attempt fails immediately. */
const MAX_ATTEMPTS = 12
/** Finds fetches whose hint was lost. */
const POLL_EVERY_MS = 10_000
const LEAST_PAUSE_MS = 50
const PIECE_BYTES = 16_384
/** Few, because a DNS look-up occupies a thread and webhooks need most of them. */
const LOOKUPS = { maxInFlight: 6, reservedForKnown: 2, maxPerOwner: 1 }

export interface FetcherOptions {
  store: Pick<Store, 'fetches' | 'hints' | 'clock'>
  receiver: Pick<FileReceiver, 'receive'>
  guard: AddressGuard
  version: string
  logger: Logger
  /** An attempt has ended. Every end but `retry` is final. */
  onEnded?: ((end: FetchEnd) => void) | undefined
}

/** `retry`: it is tried again. `given_up`: the file is not needed any more. */
export type FetchEnd = 'stored' | 'retry' | 'given_up' | FetchFailure

type FetchOutcome =
  | { kind: 'stored' | 'given_up' }
  | { kind: 'failed'; failure: FetchFailure; why: string }
  /** `isTheirs`: the host's fault, so the attempt counts. */
  | { kind: 'later'; isTheirs: boolean; why: string }

/**
 * Fetches the files of messages from their URLs: claim, act, record. A fetch is a row, so a kill leaves it to be claimed again,
 * by any node.
 */
export class Fetcher {
  readonly #options: FetcherOptions
  readonly #places = new Places()
  readonly #connector
  readonly #stopping = new AbortController()
  readonly #running = new Set<Promise<void>>()
  readonly #unsubscribe: () => void
  #timer: NodeJS.Timeout | undefined
  #isClaiming = false
  #isStale = false

  constructor(options: FetcherOptions) {
    this.#options = options
    const resolver = new Resolver(LOOKUPS)
    const resolve: Lookup = (hostname, owner) => resolver.resolve(hostname, owner)
    this.#connector = createConnector({ guard: options.guard, resolve, pieceBytes: PIECE_BYTES })
    this.#unsubscribe = options.store.hints.on('files', () => this.wake())
    this.wake()
  }

  /** There may be something to fetch. */
  wake(): void {
    this.#isStale = true
    if (!this.#isClaiming && !this.#stopping.signal.aborted) void this.#fill()
  }

  async stop(): Promise<void> {
    this.#unsubscribe()
    this.#stopping.abort()
    clearTimeout(this.#timer)
    await Promise.all(this.#running)
    this.#connector.destroy()
  }

  async #fill(): Promise<void> {
    this.#isClaiming = true
    clearTimeout(this.#timer)
    const { signal } = this.#stopping
    let pauseMs = POLL_EVERY_MS
    try {
      while (this.#isStale && !signal.aborted) {
        this.#isStale = false
        pauseMs = await this.#claimDue()
      }
    } catch (error) {
      if (!signal.aborted) this.#options.logger.warn({ err: error }, 'media.fetch_claim_failed')
    }
    this.#isClaiming = false
    if (!signal.aborted) this.#timer = setTimeout(() => this.wake(), pauseMs)
  }

  /** @returns milliseconds until the next poll */
  async #claimDue(): Promise<number> {
    const { fetches, clock } = this.#options.store
    while (!this.#places.isFull && !this.#stopping.signal.aborted) {
      const fetch = await fetches.claim(this.#places.full(), clock.now())
      if (fetch === null) break
      this.#begin(fetch)
    }
    // Fetches without a free place are claimed when another fetch ends.
    const nextInMs = this.#places.isFull ? null : await fetches.nextInMs(this.#places.full())
    if (nextInMs === null) return POLL_EVERY_MS
    return Math.min(POLL_EVERY_MS, Math.max(LEAST_PAUSE_MS, nextInMs))
  }

  #begin(fetch: Fetch): void {
    const place = this.#places.begin(fetch)
    const ended = this.#run(fetch)
      .catch(error => {
        // The claim ends by itself, and the fetch is tried again.
        if (!this.#stopping.signal.aborted)
          this.#options.logger.error({ ...namesOf(fetch), err: error }, 'media.fetch_failed')
      })
      .finally(() => {
        place[Symbol.dispose]()
        this.#running.delete(ended)
        this.wake()
      })
    this.#running.add(ended)
  }

  async #run(fetch: Fetch): Promise<void> {
    const { store, logger, onEnded } = this.#options
    const startedAt = performance.now()
    const outcome = await this.#fetch(fetch)
    const { signal } = this.#stopping
    if (signal.aborted) return store.fetches.recordRetry(fetch, fetch.attempts, 0)
    const durationMs = Math.round(performance.now() - startedAt)
    const { attempts } = fetch
    const counted = outcome.kind === 'later' && outcome.isTheirs ? attempts + 1 : attempts
    const end = endOf(outcome, counted)
    onEnded?.(end)
    const why = 'why' in outcome ? { why: outcome.why } : {}
    logger.info({ ...namesOf(fetch), outcome: outcome.kind, ...why, attempts, durationMs }, 'media.url_fetched')
    if (end === 'stored' || end === 'given_up') return
    if (end !== 'retry') return this.#fail(fetch, end)
    const pauseMs =
      counted > attempts ? backoffMs(attempts, FIRST_PAUSE_MS, LONGEST_FETCH_PAUSE_MS) : LONGEST_FETCH_PAUSE_MS
    await untilStored(() => store.fetches.recordRetry(fetch, counted, pauseMs), signal)
  }

  async #fetch(fetch: Fetch): Promise<FetchOutcome> {
    const { store, receiver, version } = this.#options
    const lost = new AbortController()
    const signal = AbortSignal.any([this.#stopping.signal, lost.signal, AbortSignal.timeout(ATTEMPT_MS)])
    const extending = setInterval(() => {
      store.fetches.extend(fetch).then(
        isNeeded => !isNeeded && lost.abort(),
        () => undefined,
      )
    }, EXTEND_EVERY_MS)
    try {
      const { agentFor } = this.#connector
      const { mimetype, size, bytes } = await openUrl(fetch.url, { agentFor, version, signal, owner: fetch.instanceId })
      refuseLarge(size ?? 0, null)
      const file = { mimetype, size: size ?? 0 }
      const outcome = await receiver.receive(fetch.instanceId, file, bytes, store.clock.now(), stored =>
        store.fetches.recordFetched(fetch, stored),
      )
      if (outcome === 'full') return { kind: 'failed', failure: 'media_quota_exceeded', why: 'media_quota_exceeded' }
      if (outcome === 'busy')
        return { kind: 'later', isTheirs: false, why: 'Unfinished files are taking up the space.' }
      return { kind: outcome }
    } catch (error) {
      if (lost.signal.aborted) return { kind: 'given_up' }
      return outcomeOf(error)
    } finally {
      clearInterval(extending)
      // Ends a response that was not read to its end.
      lost.abort()
    }
  }

  async #fail(fetch: Fetch, failure: FetchFailure): Promise<void> {
    const { store } = this.#options
    const { signal } = this.#stopping
    await untilStored(() => store.fetches.recordFailed(fetch, failure, store.clock.now()), signal)
  }
}

/** @param attempts the attempts that count, including this one if it does */
function endOf(outcome: FetchOutcome, attempts: number): FetchEnd {
  if (outcome.kind === 'failed') return outcome.failure
  if (outcome.kind !== 'later') return outcome.kind
  return attempts >= MAX_ATTEMPTS ? 'not_fetched' : 'retry'
}

function outcomeOf(error: unknown): FetchOutcome {
  const why = error instanceof Error ? error.message : String(error)
  if (error instanceof FetchFailed && error.isFinal) return { kind: 'failed', failure: 'not_fetched', why }
  if (error instanceof FetchFailed) return { kind: 'later', isTheirs: true, why }
  if (error instanceof Refusal) {
    const failure = error.code === 'media_too_large' ? 'media_too_large' : 'not_fetched'
    return { kind: 'failed', failure, why }
  }
  return { kind: 'later', isTheirs: false, why }
}

/** The fields for the log, without the URL, which may be secret. */
function namesOf({ instanceId, mediaId }: Fetch) {
  return { instanceId, mediaId }
}
