import type { EndpointId, InstanceId } from '../domain/ids.ts'
import { backoffMs } from '../kit/backoff.ts'
import { waitAtMost } from '../kit/deadline.ts'
import type { Foreground } from '../kit/foreground.ts'
import type { Deliveries, DueDelivery } from '../store/deliveries/deliveries.ts'
import type { Endpoints } from '../store/endpoints/endpoints.ts'
import { StoreUnavailable } from '../store/errors.ts'
import type { Hints } from '../store/hints.ts'
import type { Lease } from '../store/leases/leases.ts'
import type { AttemptOptions, EndedAttempt } from './attempt.ts'
import { LeaseNotRenewed, logAttempt, makeAttempt, PostingCache } from './attempt.ts'
import type { NextAttempt, PageKind } from './claim.ts'
import { Claims } from './claim.ts'
import type { ConcurrencyLimit, ConsumerSpeed, LimitedLane, Permit } from './concurrency-limit.ts'
import { AttemptRecorder } from './record.ts'

interface LaneStore {
  deliveries: Pick<Deliveries, 'listFirst' | 'listRetries' | 'recordAttempt'>
  endpoints: Pick<Endpoints, 'findPosting' | 'listPosting'>
  hints: Hints
  foreground: Pick<Foreground, 'hasPriority'>
}

export interface LaneOptions extends AttemptOptions {
  store: LaneStore
  limit: ConcurrencyLimit
  onLeaseLost: (instanceId: InstanceId) => void
}

/** How long `shut` waits for aborted attempts. A write that the store never answers is abandoned. */
const ABORT_MS = 100

const NEVER = Number.POSITIVE_INFINITY
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000
/**
 * How long a new event waits if the latest attempt at its endpoint failed: endpoints that answer go first. The time is
 * random, so that the failing endpoints of an instance do not get the event at the same moment.
 */
const FAILING_WAITS_MS = { from: 100, to: 300 }
/** The wait is extended by this time as long as the foreground has priority. */
const YIELDS_MS = 2

/**
 * Posts the deliveries of one endpoint: claim, attempt, record.
 *
 * - `running`: attempts start as they become due, first attempts in the order of the events, retries at their due time.
 * - `draining`, after `shut` or after the loss of the lease: nothing is claimed. After `shut`, claimed deliveries are
 *   still attempted and recorded.
 * - `ended`: ended attempts that were not recorded are in `unrecorded`, for the endpoint's next lane on this node.
 *   Attempts that did not end are made again by the instance's next owner, under the same webhook-id.
 *
 * While its endpoint is inactive the lane holds: it starts nothing until a hint or a poll finds the endpoint active.
 *
 * After a failed read, or if an attempt cannot be made, the lane pauses with backoff. Attempts that have ended are
 * recorded when the store is back.
 */
export class Lane implements LimitedLane {
  speed: ConsumerSpeed = 'unknown'
  /** Whether the latest attempt failed. */
  isFailing = false
  readonly group: InstanceId
  readonly #instanceId: InstanceId
  readonly #options: LaneOptions
  readonly #claims: Claims
  readonly #recorder: AttemptRecorder
  readonly #posting: PostingCache
  readonly #subscriptions: readonly (() => void)[]
  readonly #inFlight = new Map<number, Promise<void>>()
  readonly #abort = new AbortController()
  #phase: 'running' | 'draining' | 'ended' = 'running'
  #isHeld = false
  #wakesLater = false
  #failures = 0
  #pausedUntil = Number.NEGATIVE_INFINITY
  #cancelTimer: (() => void) | undefined

  /** @param unrecorded by the endpoint's previous lane; recorded first */
  constructor(lease: Lease, endpointId: EndpointId, options: LaneOptions, unrecorded: readonly EndedAttempt[] = []) {
    const { store, clock } = options
    const { instanceId } = lease
    this.#instanceId = this.group = instanceId
    this.#options = options
    this.#claims = new Claims({ instanceId, endpointId, deliveries: store.deliveries, clock, consumer: this })
    this.#recorder = new AttemptRecorder(lease, {
      deliveries: store.deliveries,
      clock,
      onLeaseLost: () => this.#onLeaseLost(),
      onFailed: error => this.#warn(error, 'delivery.record_failed'),
    })
    this.#posting = new PostingCache(instanceId, endpointId, store.endpoints, clock)
    this.#subscriptions = [
      store.hints.on(
        'deliveries',
        (_, __, about) => {
          if (about !== undefined && about !== endpointId) return
          if (this.isFailing) this.#wakeLater()
          else this.wake()
        },
        instanceId,
      ),
      store.hints.on('webhook', () => this.poll(), instanceId),
    ]
    for (const ended of unrecorded) this.#recordAgain(ended)
  }

  /** Attempts that are running or not yet recorded. */
  get inFlight(): number {
    return this.#inFlight.size
  }

  /** Attempts that ended and could not be recorded. */
  get unrecorded(): readonly EndedAttempt[] {
    return [...this.#recorder.unrecorded]
  }

  /** Continues under a newer epoch of the same owner. */
  adopt(lease: Lease): void {
    this.#recorder.adopt(lease)
  }

  /** Reads the database: there may be deliveries that can start. */
  wake(): void {
    this.#claims.invalidateFirsts()
    this.#advance()
  }

  #wakeLater(delayMs = between(FAILING_WAITS_MS)): void {
    // Not in the timer: a slot may become free earlier, and the new delivery may be the earliest.
    this.#claims.invalidateFirsts()
    if (this.#wakesLater) return
    this.#wakesLater = true
    const { clock, store } = this.#options
    clock.after(delayMs, () => {
      this.#wakesLater = false
      if (store.foreground.hasPriority) this.#wakeLater(YIELDS_MS)
      else this.wake()
    })
  }

  /** Like `wake`, and the endpoint may have changed, or a person may have requested retries. Their hints may be lost. */
  poll(): void {
    this.#posting.invalidate()
    this.#claims.invalidateRetries()
    this.wake()
  }

  /** Releases a held lane if its endpoint is active. The read that held the lane may be older than the latest hint. */
  #wakeIfActive(): void {
    this.#posting.get().then(
      ({ active }) => {
        if (!active || !this.#isHeld) return
        this.#isHeld = false
        this.#advance()
      },
      error => this.#pause(error),
    )
  }

  /** Uses the turn even if a hint arrived meanwhile. Otherwise a stream of hints would cost the lane its turns. */
  onPermit(): void {
    this.#advance(true)
  }

  /** Resolves when nothing is in flight. After `graceMs` it aborts the attempts that still run. */
  async shut(graceMs: number): Promise<void> {
    this.#drain()
    await this.#untilIdle(graceMs)
    this.#phase = 'ended'
    this.#abort.abort()
    this.#recorder.stop()
    await this.#untilIdle(ABORT_MS)
  }

  async #untilIdle(withinMs: number): Promise<void> {
    const { clock } = this.#options
    await waitAtMost(withinMs, Promise.all(this.#inFlight.values()), (ms, task) => clock.after(ms, task))
  }

  #drain(): void {
    if (this.#phase === 'running') this.#phase = 'draining'
    this.#cancelTimer?.()
    for (const unsubscribe of this.#subscriptions) unsubscribe()
    this.#options.limit.remove(this)
  }

  /** Starts what can start, reads ahead, and sets a timer for the next retry. Hints, permits and ended attempts call it again. */
  #advance(staleAllowed = false): void {
    const { clock } = this.#options
    if (this.#phase !== 'running') return
    // Read once, so that a retry that becomes due during this call gets a timer.
    const now = clock.steady()
    let wakeAt = NEVER
    if (now < this.#pausedUntil) wakeAt = this.#pausedUntil
    else if (this.#isHeld) this.#wakeIfActive()
    else {
      const page = this.#claims.nextPage(now)
      if (page !== null) this.#readAhead(page).catch(error => this.#pause(error))
      this.#claim(now, staleAllowed)
      wakeAt = this.#claims.nextWakeAt(now)
    }
    this.#cancelTimer?.()
    if (wakeAt < NEVER) this.#cancelTimer = clock.after(wakeAt - clock.steady(), () => this.#advance())
  }

  async #readAhead(page: PageKind): Promise<void> {
    await this.#claims.read(page)
    const now = this.#options.clock.steady()
    const mayStart = this.#phase === 'running' && !this.#isHeld && now >= this.#pausedUntil
    // A page of first attempts is used even if a hint arrived meanwhile. Otherwise a stream of hints would stop the lane.
    if (mayStart) this.#claim(now, page === 'firsts')
    this.#advance()
  }

  // ── Claim, attempt, record ──────────────────────────────────────────────────────────────────────────────────────

  #claim(now: number, staleAllowed: boolean): void {
    for (;;) {
      const delivery = this.#claims.peek(now, staleAllowed)
      const permit = delivery && this.#options.limit.acquire(this)
      if (!delivery || !permit) return
      this.#claims.claim(delivery)
      this.#inFlight.set(delivery.seq, this.#settle(delivery, this.#deliver(delivery, permit)))
    }
  }

  async #deliver(delivery: DueDelivery, permit: Permit): Promise<NextAttempt> {
    let ended: EndedAttempt | undefined
    try {
      const { keys, active } = await this.#posting.get()
      // The lane has ended or lost its lease, so the next owner makes this attempt. A draining lane still makes it.
      if (this.#recorder.stopSignal.aborted) return 'none'
      if (!active) {
        this.#isHeld = true
        return 'unknown'
      }
      permit.begin()
      ended = await makeAttempt(delivery, keys, this.#abort.signal, this.#options)
    } finally {
      if (ended) permit.release()
      else permit.giveBack()
    }
    // An aborted attempt has no outcome.
    if (this.#phase === 'ended') return 'none'
    this.isFailing = ended.next.kind !== 'delivered'
    logAttempt(ended, this.#options.logger)
    this.#options.observer?.onAttempt(ended)
    return this.#recorder.record(ended)
  }

  #recordAgain(ended: EndedAttempt): void {
    this.#claims.claim(ended.delivery)
    const recorded = this.#recorder.record(ended).then((): NextAttempt => 'unknown')
    this.#inFlight.set(ended.delivery.seq, this.#settle(ended.delivery, recorded))
  }

  /** Releases the claim when the work has ended. */
  async #settle(delivery: DueDelivery, work: Promise<NextAttempt>): Promise<void> {
    const [result] = await Promise.allSettled([work])
    this.#inFlight.delete(delivery.seq)
    if (result.status === 'fulfilled') {
      this.#claims.release(delivery, result.value)
      this.#advance()
    } else {
      this.#claims.release(delivery, 'unknown')
      this.#pause(result.reason)
    }
  }

  // ── Errors ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #onLeaseLost(): void {
    this.#drain()
    this.#options.onLeaseLost(this.#instanceId)
  }

  /** Starts nothing for a while, longer each time unless the last pause is long over. */
  #pause(error: unknown): void {
    const now = this.#options.clock.steady()
    if (now >= this.#pausedUntil) {
      if (now >= this.#pausedUntil + LONGEST_PAUSE_MS) this.#failures = 0
      this.#pausedUntil = now + backoffMs(this.#failures, FIRST_PAUSE_MS, LONGEST_PAUSE_MS)
      this.#failures += 1
      this.#warn(error, 'lane.paused')
    }
    this.#advance()
  }

  #warn(error: unknown, fact: string): void {
    const level = error instanceof StoreUnavailable || error instanceof LeaseNotRenewed ? 'warn' : 'error'
    this.#options.logger[level]({ instanceId: this.#instanceId, err: error }, fact)
  }
}

function between({ from, to }: { from: number; to: number }): number {
  return from + Math.random() * (to - from)
}
