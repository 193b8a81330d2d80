import { pino } from 'pino'
import type { AfterAttempt } from '../../src/domain/events/delivery.ts'
import { RETRY_DELAYS_MS } from '../../src/domain/events/delivery.ts'
import { DEFAULT_ENDPOINT, type SigningSecrets } from '../../src/domain/events/endpoint.ts'
import type { AttemptRecord, DueDelivery } from '../../src/store/deliveries/deliveries.ts'
import type { PostingState } from '../../src/store/endpoints/endpoints.ts'
import { LeaseLost, StoreUnavailable } from '../../src/store/errors.ts'
import { LocalHints } from '../../src/store/hints.ts'
import type { Lease } from '../../src/store/leases/leases.ts'
import { Dispatcher, type DispatcherOptions } from '../../src/webhooks/dispatcher.ts'
import type { PostOutcome, PostRequest } from '../../src/webhooks/posting/post.ts'
import { ManualClock } from '../manual-clock.ts'

export const OK: PostOutcome = { kind: 'answered', status: 200, excerpt: null }
export const REFUSED: PostOutcome = { kind: 'answered', status: 500, excerpt: 'no' }

interface Row {
  delivery: DueDelivery
  state: 'first' | 'retry' | 'blocked' | 'delivered' | 'exhausted'
  waitsFor: number | null
  attempts: AttemptRecord[]
}

/** The rows of all lanes, in memory. */
class Rows {
  readonly rows: Row[] = []
  readonly hints = new LocalHints()
  readonly foreground = { hasPriority: false }
  readonly epochs = new Map<string, number>()
  secrets: SigningSecrets = { current: 'whsec_AAAA', previous: [] }
  unavailable = false
  reads = 0
  /** How long the store takes to answer. A read returns the rows as they were when it was called. */
  tripMs = () => 0
  readonly #byInstance = new Map<string, Row[]>()
  readonly #clock: ManualClock

  constructor(clock: ManualClock) {
    this.#clock = clock
  }

  add(
    instanceId: string,
    clock: ManualClock,
    options: { after?: number; quietly?: boolean; endpoint?: string } = {},
  ): number {
    const seq = this.rows.length + 1
    const delivery: DueDelivery = {
      seq,
      instanceId,
      eventId: `evt_${seq}`,
      endpointId: options.endpoint ?? DEFAULT_ENDPOINT,
      messageId: null,
      traceparent: null,
      requested: null,
      kind: 'message.received',
      url: `https://consumer.test/${options.endpoint ?? instanceId}`,
      body: Buffer.from(`{"n":${seq}}`),
      attemptNumber: 1,
      failedAt: null,
      dueAt: clock.now(),
    }
    const waitsFor = options.after ?? null
    const before = waitsFor === null ? undefined : this.rows[waitsFor - 1]
    const isBlocked = before !== undefined && before.state !== 'delivered' && before.state !== 'exhausted'
    const row: Row = { delivery, state: isBlocked ? 'blocked' : 'first', waitsFor, attempts: [] }
    this.rows.push(row)
    const lane = this.#byInstance.get(instanceId) ?? []
    this.#byInstance.set(instanceId, lane)
    lane.push(row)
    if (!options.quietly) this.hints.publish('deliveries', instanceId)
    return seq
  }

  of(instanceId: string): Row[] {
    return this.#byInstance.get(instanceId) ?? []
  }

  count(state: Row['state']): number {
    return this.rows.filter(row => row.state === state).length
  }

  /** Endpoints besides the default one, by instance. Those in `inactive` are held. */
  readonly endpointsOf = new Map<string, string[]>()
  readonly inactive = new Set<string>()

  readonly endpoints = {
    findPosting: async (_instanceId: string, endpointId: string): Promise<PostingState | null> => {
      this.#check()
      return { secrets: this.secrets, active: !this.inactive.has(endpointId) }
    },
    listPosting: async (instanceId: string): Promise<string[]> => {
      this.#check()
      return this.endpointsOf.get(instanceId) ?? []
    },
  }

  readonly deliveries = {
    listFirst: async (
      instanceId: string,
      afterSeq: number,
      limit: number,
      endpointId = DEFAULT_ENDPOINT,
    ): Promise<DueDelivery[]> => {
      this.#check()
      this.reads += 1
      const found: DueDelivery[] = []
      for (const { state, delivery } of this.of(instanceId)) {
        if (delivery.endpointId !== endpointId) continue
        if (state === 'first' && delivery.seq > afterSeq && found.length < limit) found.push(delivery)
      }
      return this.#answer(found)
    },

    listRetries: async (instanceId: string, limit: number, endpointId = DEFAULT_ENDPOINT): Promise<DueDelivery[]> => {
      this.#check()
      this.reads += 1
      const found = this.of(instanceId)
        .filter(({ delivery }) => delivery.endpointId === endpointId)
        .filter(({ state }) => state === 'retry')
        .map(({ delivery }) => delivery)
        .sort((a, b) => a.dueAt - b.dueAt || a.seq - b.seq)
        .slice(0, limit)
      return this.#answer(found)
    },

    recordAttempt: async (
      lease: Lease,
      { seq }: DueDelivery,
      attempt: AttemptRecord,
      next: AfterAttempt,
    ): Promise<void> => {
      this.#check()
      if ((this.epochs.get(lease.instanceId) ?? 1) !== lease.epoch) throw new LeaseLost(lease.instanceId)
      this.#apply(lease, this.rows[seq - 1]!, attempt, next)
      return this.#answer(undefined)
    },
  }

  #apply(lease: Lease, row: Row, attempt: AttemptRecord, next: AfterAttempt): void {
    const { seq } = row.delivery
    if (row.delivery.attemptNumber !== attempt.attemptNumber) return
    row.attempts.push(attempt)
    row.state = next.kind
    if (next.kind === 'retry') {
      const { dueAt, failedAt } = next
      row.delivery = { ...row.delivery, attemptNumber: attempt.attemptNumber + 1, dueAt, failedAt }
      return
    }
    const successor = this.of(lease.instanceId).find(({ waitsFor }) => waitsFor === seq)
    if (successor) {
      successor.state = 'first'
      this.hints.publish('deliveries', lease.instanceId)
    }
  }

  async #answer<T>(value: T): Promise<T> {
    const tripMs = this.tripMs()
    if (tripMs > 0) await new Promise<void>(resolve => this.#clock.after(tripMs, resolve))
    return value
  }

  #check(): void {
    if (this.unavailable) throw new StoreUnavailable('unavailable')
  }
}

export interface Sent {
  seq: number
  instanceId: string
  attemptNumber: number
  at: number
  headers: Record<string, string>
  end: (outcome: PostOutcome) => void
}

/** Consumers that answer immediately by a rule, or when the test calls `end`. */
class Consumers {
  readonly sent: Sent[] = []
  readonly open = new Map<string, Sent[]>()
  readonly mostOpen = new Map<string, number>()
  readonly mostFirstsOpen = new Map<string, number>()
  rule: (sent: Sent) => PostOutcome | 'later' = () => OK
  readonly #clock: ManualClock

  constructor(clock: ManualClock) {
    this.#clock = clock
  }

  send = ({ url, headers, body, signal }: PostRequest): Promise<PostOutcome> => {
    const { promise, resolve } = Promise.withResolvers<PostOutcome>()
    const instanceId = url.split('/').at(-1)!
    const sent: Sent = {
      seq: JSON.parse(Buffer.from(body).toString()).n,
      instanceId,
      attemptNumber: Number(headers['X-Service-Attempt']),
      at: this.#clock.steady(),
      headers,
      end: outcome => {
        this.open.set(
          instanceId,
          this.openOf(instanceId).filter(other => other !== sent),
        )
        resolve(outcome)
      },
    }
    signal?.addEventListener('abort', () => sent.end({ kind: 'failed', error: 'timeout' }))
    this.sent.push(sent)
    const now = [...this.openOf(instanceId), sent]
    this.open.set(instanceId, now)
    this.#raise(this.mostOpen, instanceId, now.length)
    this.#raise(this.mostFirstsOpen, instanceId, now.filter(({ attemptNumber }) => attemptNumber === 1).length)
    const outcome = this.rule(sent)
    if (outcome !== 'later') sent.end(outcome)
    return promise
  }

  close = async (): Promise<void> => {}

  openOf(instanceId: string): Sent[] {
    return this.open.get(instanceId) ?? []
  }

  /** Attempts of one delivery, in their order. */
  of(seq: number): Sent[] {
    return this.sent.filter(sent => sent.seq === seq)
  }

  #raise(most: Map<string, number>, instanceId: string, count: number): void {
    most.set(instanceId, Math.max(most.get(instanceId) ?? 0, count))
  }
}

/** Like real clocks, it advances between two readings, and its timers run a little early. */
export class CreepingClock extends ManualClock {
  readonly #step: number

  /** @param step milliseconds from one reading to the next */
  constructor(step: number) {
    super()
    this.#step = step
  }

  override steady(): number {
    this.move(super.steady() + this.#step)
    return super.steady()
  }

  override after(delayMs: number, task: () => void): () => void {
    return super.after(delayMs - 0.5, task)
  }
}

export function setUp(options: Partial<DispatcherOptions['settings']> = {}, clock = new ManualClock()) {
  const store = new Rows(clock)
  const consumers = new Consumers(clock)
  const lost: string[] = []
  const log: Record<string, unknown>[] = []
  const node = { mayAct: true }
  const dispatcher = new Dispatcher({
    store,
    post: consumers,
    settings: { retryDelaysMs: RETRY_DELAYS_MS, version: '0.0.0', ...options },
    logger: pino({}, { write: line => log.push(JSON.parse(line)) }),
    mayAct: () => node.mayAct,
    onLeaseLost: instanceId => lost.push(instanceId),
    clock,
  })
  const open = (instanceId: string, epoch = 1) => {
    store.epochs.set(instanceId, epoch)
    dispatcher.open({ instanceId, owner: 'me', epoch })
  }
  return { clock, store, consumers, dispatcher, open, lost, log, node }
}

/** The pauses between the attempts of one delivery. */
export function gaps(attempts: readonly Sent[]): number[] {
  return attempts.slice(1).map(({ at }, index) => at - attempts[index]!.at)
}
