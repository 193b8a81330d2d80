import type { InstanceId } from '../domain/ids.ts'
import type { SigningSecrets } from '../domain/instance.ts'
import type { Deliveries, DueDelivery } from '../store/deliveries/deliveries.ts'
import { LeaseLost, StoreUnavailable } from '../store/errors.ts'
import type { Instances } from '../store/instances/instances.ts'
import type { Lease } from '../store/leases/leases.ts'
import type { AttemptMeans, EndedAttempt } from './attempt.ts'
import { logAttempt, MayNotAct, makeAttempt } from './attempt.ts'
import { FirstAttempts } from './first-attempts.ts'
import { Retries } from './retries.ts'
import { SecretsInForce } from './secrets-in-force.ts'
import type { Pace, Slot, Slots, SlotUser } from './slots.ts'

/** The part of the store that a lane needs. */
export interface LaneStore {
  deliveries: Pick<Deliveries, 'listFirst' | 'listRetries' | 'recordAttempt'>
  instances: Pick<Instances, 'findSigningSecrets'>
}

/** What all lanes of a node share. */
export interface LaneSurroundings extends AttemptMeans {
  store: LaneStore
  slots: Slots
  onLeaseLost: (instanceId: InstanceId) => void
}

/** Requests of one instance in flight (contract §5). */
const MAX_IN_FLIGHT = 8
/** Two of them are kept for retries. While first attempts wait, they in turn find two that retries leave them. */
const MAX_OF_ONE_SORT = 6

/** For what is broken off to notice; a write to the store that never ends is left behind. */
const BREAK_OFF_MS = 100

const FIRST_HOLD_MS = 100
const LONGEST_HOLD_MS = 5_000

/** What is to be done when a delivery is no longer in flight. */
type Sequel = (() => void) | undefined

const NEVER = Number.POSITIVE_INFINITY
const WHENEVER_DUE = Number.MAX_SAFE_INTEGER
const FROM_THE_START = { dueAt: -1, seq: -1 }

/**
 * One instance's deliveries on their way.
 *
 * - `running`: attempts start as they become due, first ones in the order of the events, retries at their moment.
 * - `draining`, after `shut` or once a write has shown that the lease has moved on: none starts any more, those under
 *   way end and are recorded if they can be.
 * - `ended`: what was not recorded by then is left to the instance's next lane on this node (`leftovers`); what had
 *   not even ended is attempted again by whoever owns the instance next, under the same webhook-id.
 *
 * While the store cannot be reached nothing starts, and what is known of ended attempts is recorded again and again.
 */
export class Lane implements SlotUser {
  pace: Pace = 'untried'
  /** Attempts that ended and were not recorded. */
  readonly leftovers: EndedAttempt[] = []
  readonly #with: LaneSurroundings
  readonly #firsts = new FirstAttempts()
  readonly #retries = new Retries()
  readonly #secrets: SecretsInForce
  /** Taken from the rows and not yet recorded, by the delivery's id. */
  readonly #inFlight = new Map<string, Promise<void>>()
  #firstsInFlight = 0
  /** Gone on while a page was being read, which may show them as they were before. */
  readonly #releasedMeanwhile = new Set<string>()
  readonly #broken = new AbortController()
  #lease: Lease
  #phase: 'running' | 'draining' | 'ended' = 'running'
  #leaseLost = false
  #looking = false
  #holdMs = 0
  #heldUntil = Number.NEGATIVE_INFINITY
  #cancelAlarm = () => {}
  /** Wakes whatever waits to record again. */
  readonly #pauses = new Set<() => void>()

  /** @param leftovers of the instance's lane before; recorded first */
  constructor(lease: Lease, surroundings: LaneSurroundings, leftovers: readonly EndedAttempt[] = []) {
    this.#lease = lease
    this.#with = surroundings
    this.#secrets = new SecretsInForce(() => this.#readSecrets(), surroundings.clock)
    for (const ended of leftovers) this.#track(ended.delivery, () => this.#recordLeftover(ended))
  }

  get inFlight(): number {
    return this.#inFlight.size
  }

  get #mayHang(): boolean {
    return this.pace !== 'quick'
  }

  /** The same owner under a newer epoch: goes on with it. */
  adopt(lease: Lease): void {
    if (lease.epoch > this.#lease.epoch) this.#lease = lease
  }

  /** There may be deliveries that can start. */
  wake(): void {
    this.#firsts.invalidate()
    this.#goOn()
  }

  onSecretChanged(): void {
    this.#secrets.drop()
  }

  onSlot(): void {
    this.#goOn()
  }

  /** Resolves when nothing is in flight, after `graceMs` at the latest: what is still under way then is broken off. */
  async shut(graceMs: number): Promise<void> {
    this.#drain()
    await this.#untilEmpty(graceMs)
    this.#phase = 'ended'
    this.#broken.abort()
    for (const resume of this.#pauses) resume()
    await this.#untilEmpty(BREAK_OFF_MS)
  }

  async #untilEmpty(withinMs: number): Promise<void> {
    const over = Promise.withResolvers<void>()
    const cancel = this.#with.clock.after(withinMs, over.resolve)
    await Promise.race([Promise.all(this.#inFlight.values()), over.promise])
    cancel()
  }

  #drain(): void {
    if (this.#phase === 'running') this.#phase = 'draining'
    this.#cancelAlarm()
    this.#with.slots.forget(this)
  }

  // ── What to do next ─────────────────────────────────────────────────────────────────────────────────────────────

  #goOn(): void {
    const { clock } = this.#with
    if (this.#phase !== 'running') return
    // One moment for all: what becomes due while this runs is not due here, and has an alarm.
    const now = clock.steady()
    if (now >= this.#heldUntil) {
      if (!this.#looking && this.#nextLook(now) !== null) this.#look().catch(error => this.#onTrouble(error))
      this.#startWhatCan(!this.#firsts.stale, now)
    }
    this.#cancelAlarm()
    const alarmAt = this.#nextAlarm(now)
    if (alarmAt < NEVER) this.#cancelAlarm = clock.after(alarmAt - clock.steady(), () => this.#goOn())
  }

  /** Attempts that end, slots and hints call `#goOn`; only time itself needs an alarm. */
  #nextAlarm(now: number): number {
    if (now < this.#heldUntil) return this.#heldUntil
    const moments = [this.#looking ? NEVER : this.#retries.lookAt, this.#retries.peek()?.dueAt ?? NEVER]
    return Math.min(...moments.map(at => (at > now ? at : NEVER)))
  }

  #nextLook(now = this.#with.clock.steady()): 'retries' | 'firsts' | null {
    if (this.#retries.lookAt <= now) return 'retries'
    if (this.#firsts.stale ? this.#mayStart('first') : this.#firsts.runsLow(this.#mayHang)) return 'firsts'
    return null
  }

  #mayStart(sort: 'first' | 'retry'): boolean {
    if (this.#inFlight.size >= MAX_IN_FLIGHT) return false
    if (sort === 'first') return this.#firstsInFlight < MAX_OF_ONE_SORT
    const mayFirstsWait = this.#firsts.stale || this.#firsts.peek() !== undefined
    if (!mayFirstsWait || this.#firstsInFlight >= MAX_OF_ONE_SORT) return true
    return this.#inFlight.size - this.#firstsInFlight < MAX_OF_ONE_SORT
  }

  #startWhatCan(withFirsts: boolean, now = this.#with.clock.steady()): void {
    for (;;) {
      const retry = this.#mayStart('retry') ? this.#retries.peek() : undefined
      const isRetryDue = retry !== undefined && retry.dueAt <= now
      const first = withFirsts && this.#mayStart('first') ? this.#firsts.peek() : undefined
      const delivery = isRetryDue ? retry : first
      const slot = delivery && this.#with.slots.take(this)
      if (!delivery || !slot) return
      if (isRetryDue) this.#retries.shift()
      else this.#firsts.shift()
      this.#track(delivery, () => this.#attempt(delivery, slot))
    }
  }

  /** Counts the delivery as in flight while `work` goes on; what follows from it is done once it no longer is. */
  #track(delivery: DueDelivery, work: () => Promise<Sequel>): void {
    const isFirst = delivery.attemptNumber === 1
    if (isFirst) this.#firstsInFlight += 1
    const done = work()
      .catch(error => {
        this.#onTrouble(error)
        return () => this.#putBack(isFirst)
      })
      .then(sequel => {
        this.#inFlight.delete(delivery.id)
        if (isFirst) this.#firstsInFlight -= 1
        if (this.#looking) this.#releasedMeanwhile.add(delivery.id)
        sequel?.()
        this.#goOn()
      })
    this.#inFlight.set(delivery.id, done)
  }

  /** Only its row knows what comes next of a delivery. */
  #putBack(isFirst: boolean): void {
    if (isFirst) this.#firsts.invalidate()
    this.#retries.invalidate()
  }

  // ── Reading ahead ───────────────────────────────────────────────────────────────────────────────────────────────

  async #look(): Promise<void> {
    this.#looking = true
    try {
      for (let what = this.#nextLook(); what !== null && this.#phase === 'running'; what = this.#nextLook()) {
        this.#releasedMeanwhile.clear()
        if (what === 'retries') await this.#lookAtRetries()
        else await this.#lookAtFirsts()
        this.#holdMs = 0
        if (this.#phase === 'running') this.#startWhatCan(true)
      }
    } finally {
      this.#looking = false
    }
    this.#goOn()
  }

  async #lookAtFirsts(): Promise<void> {
    const asked = this.#firsts.beginLook(this.#firstsInFlight, this.#mayHang)
    try {
      const page = await this.#with.store.deliveries.listFirst(this.#lease.instanceId, asked.afterSeq, asked.limit)
      this.#firsts.endLook(asked, page, id => this.#isTaken(id))
    } catch (error) {
      this.#firsts.failLook()
      throw error
    }
  }

  async #lookAtRetries(): Promise<void> {
    const { store, clock } = this.#with
    const { instanceId } = this.#lease
    const limit = this.#retries.beginLook(this.#inFlight.size - this.#firstsInFlight)
    try {
      const page = await store.deliveries.listRetries(instanceId, FROM_THE_START, WHENEVER_DUE, limit)
      this.#retries.endLook(limit, page, id => this.#isTaken(id), clock.steady())
    } catch (error) {
      this.#retries.invalidate()
      throw error
    }
  }

  #isTaken(id: string): boolean {
    return this.#inFlight.has(id) || this.#releasedMeanwhile.has(id)
  }

  // ── One attempt ─────────────────────────────────────────────────────────────────────────────────────────────────

  async #attempt(delivery: DueDelivery, slot: Slot): Promise<Sequel> {
    const ended = await this.#secrets
      .get()
      .then(secrets => makeAttempt(delivery, secrets, this.#broken.signal, this.#with))
      .finally(() => slot.release())
    // Broken off: nothing is known of it.
    if (this.#phase === 'ended') return
    logAttempt(ended, this.#with.logger)
    this.#with.onEnded?.(ended)
    const lease = this.#lease
    const recorded = await this.#record(ended)
    if (!recorded || ended.next.kind !== 'retry') return
    if (lease !== this.#lease) return () => this.#retries.invalidate()
    const { dueAt, failedAt } = ended.next
    const next = { ...delivery, attemptNumber: delivery.attemptNumber + 1, dueAt, failedAt }
    return () => this.#retries.add(next, this.#with.clock.steady())
  }

  /** Another owner may have been at work since: only the rows know what comes next. */
  async #recordLeftover(ended: EndedAttempt): Promise<Sequel> {
    await this.#record(ended)
    return () => this.#retries.invalidate()
  }

  async #readSecrets(): Promise<SigningSecrets> {
    const { store, clock } = this.#with
    const secrets = await store.instances.findSigningSecrets(this.#lease.instanceId, clock.now())
    if (secrets === null) throw new Error(`There are no signing secrets of ${this.#lease.instanceId}.`)
    return secrets
  }

  /** Records until the store has it. False when the lane can record no more. */
  async #record(ended: EndedAttempt): Promise<boolean> {
    const { deliveries } = this.#with.store
    for (let waitMs = FIRST_HOLD_MS; !this.#leaseLost && this.#phase !== 'ended'; waitMs *= 2) {
      const lease = this.#lease
      try {
        await deliveries.recordAttempt(lease, ended.delivery, ended.attempt, ended.next)
        return true
      } catch (error) {
        if (!(error instanceof LeaseLost)) this.#warn(error, 'delivery.unrecorded')
        else if (lease === this.#lease) this.#onLeaseLost()
      }
      if (lease === this.#lease) await this.#pause(Math.min(waitMs, LONGEST_HOLD_MS))
    }
    this.leftovers.push(ended)
    return false
  }

  #pause(ms: number): Promise<void> {
    if (this.#leaseLost || this.#phase === 'ended') return Promise.resolve()
    return new Promise(resolve => {
      const resume = () => {
        cancel()
        this.#pauses.delete(resume)
        resolve()
      }
      const cancel = this.#with.clock.after(ms, resume)
      this.#pauses.add(resume)
    })
  }

  // ── Trouble ─────────────────────────────────────────────────────────────────────────────────────────────────────

  #onLeaseLost(): void {
    if (this.#leaseLost) return
    this.#leaseLost = true
    this.#drain()
    for (const resume of this.#pauses) resume()
    this.#with.onLeaseLost(this.#lease.instanceId)
  }

  /** Nothing starts for a while, longer each time until a look succeeds. */
  #onTrouble(error: unknown): void {
    const now = this.#with.clock.steady()
    if (now >= this.#heldUntil) {
      this.#holdMs = Math.min(Math.max(FIRST_HOLD_MS, 2 * this.#holdMs), LONGEST_HOLD_MS)
      this.#heldUntil = now + this.#holdMs
      this.#warn(error, 'lane.held')
    }
    this.#goOn()
  }

  #warn(error: unknown, fact: string): void {
    const { instanceId } = this.#lease
    const level = error instanceof StoreUnavailable || error instanceof MayNotAct ? 'warn' : 'error'
    this.#with.logger[level]({ instanceId, err: error }, fact)
  }
}
