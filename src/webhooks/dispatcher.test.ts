import fc from 'fast-check'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/manual-clock.ts'
import type { AfterAttempt } from '../domain/delivery.ts'
import { RETRY_DELAYS_MS } from '../domain/delivery.ts'
import type { SigningSecrets } from '../domain/instance.ts'
import type { AttemptRecord, DueDelivery } from '../store/deliveries/deliveries.ts'
import { LeaseLost, StoreUnavailable } from '../store/errors.ts'
import { LocalHints } from '../store/hints.ts'
import type { Lease } from '../store/leases/leases.ts'
import { createDispatcher, type DispatcherOptions } from './dispatcher.ts'
import type { PostOutcome, PostRequest } from './post.ts'

const OK: PostOutcome = { kind: 'answered', status: 200, excerpt: null }
const REFUSED: PostOutcome = { kind: 'answered', status: 500, excerpt: 'no' }

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
  readonly epochs = new Map<string, number>()
  secrets: SigningSecrets = { current: 'whsec_AAAA', previous: null }
  unavailable = false
  reads = 0
  /** How long the store takes to answer. A read returns the rows as they were when it was called. */
  tripMs = () => 0
  readonly #byInstance = new Map<string, Row[]>()
  readonly #clock: ManualClock

  constructor(clock: ManualClock) {
    this.#clock = clock
  }

  add(instanceId: string, clock: ManualClock, options: { after?: number; quietly?: boolean } = {}): number {
    const seq = this.rows.length + 1
    const delivery: DueDelivery = {
      seq,
      id: `${seq}`,
      instanceId,
      eventId: `evt_${seq}`,
      kind: 'message.received',
      url: `https://consumer.test/${instanceId}`,
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
    if (!options.quietly) this.hints.give('deliveries', instanceId)
    return seq
  }

  of(instanceId: string): Row[] {
    return this.#byInstance.get(instanceId) ?? []
  }

  count(state: Row['state']): number {
    return this.rows.filter(row => row.state === state).length
  }

  readonly instances = {
    findSigningSecrets: async (): Promise<SigningSecrets | null> => {
      this.#check()
      return this.secrets
    },
  }

  readonly deliveries = {
    listFirst: async (instanceId: string, afterSeq: number, limit: number): Promise<DueDelivery[]> => {
      this.#check()
      this.reads += 1
      const found: DueDelivery[] = []
      for (const { state, delivery } of this.of(instanceId)) {
        if (state === 'first' && delivery.seq > afterSeq && found.length < limit) found.push(delivery)
      }
      return this.#answer(found)
    },

    listRetries: async (
      instanceId: string,
      after: { dueAt: number; seq: number },
      dueBefore: number,
      limit: number,
    ): Promise<DueDelivery[]> => {
      this.#check()
      this.reads += 1
      const found = this.of(instanceId)
        .filter(({ state, delivery: { dueAt } }) => state === 'retry' && dueAt > after.dueAt && dueAt <= dueBefore)
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
      this.hints.give('deliveries', lease.instanceId)
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

interface Sent {
  seq: number
  instanceId: string
  attemptNumber: number
  at: number
  headers: Record<string, string>
  end: (outcome: PostOutcome) => void
}

/** Consumers that answer at once by a rule, or when the test calls `end`. */
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
class CreepingClock extends ManualClock {
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

function setUp(options: Partial<DispatcherOptions['settings']> = {}, clock = new ManualClock()) {
  const store = new Rows(clock)
  const consumers = new Consumers(clock)
  const lost: string[] = []
  const log: Record<string, unknown>[] = []
  const node = { mayAct: true }
  const dispatcher = createDispatcher({
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
function gaps(attempts: readonly Sent[]): number[] {
  return attempts.slice(1).map(({ at }, index) => at - attempts[index]!.at)
}

test('a node that may have lost its leases posts no first attempts and no retries until they are renewed', async () => {
  const { clock, store, consumers, open, node } = setUp()
  consumers.rule = () => REFUSED
  const seq = store.add('a', clock)
  open('a')
  await clock.pass(0)
  expect(consumers.sent).toHaveLength(1)
  node.mayAct = false
  store.add('a', clock)
  await clock.pass(60_000)
  expect(consumers.sent).toHaveLength(1)
  node.mayAct = true
  await clock.pass(5_000)
  expect(consumers.sent.length).toBeGreaterThan(1)
  expect(consumers.of(seq).map(({ attemptNumber }) => attemptNumber)).toEqual([1, 2])
  expect(store.rows[0]?.attempts).toHaveLength(2)
})

describe('the schedule', () => {
  test('six attempts, each exactly its delay after the end of the previous one, then exhausted', async () => {
    const { clock, store, consumers, open } = setUp()
    consumers.rule = () => REFUSED
    const seq = store.add('a', clock)
    open('a')
    await clock.pass(RETRY_DELAYS_MS.reduce((sum, delay) => sum + delay, 0))
    expect(gaps(consumers.of(seq))).toEqual([...RETRY_DELAYS_MS])
    expect(consumers.of(seq).map(({ attemptNumber }) => attemptNumber)).toEqual([1, 2, 3, 4, 5, 6])
    expect(store.rows[0]).toMatchObject({ state: 'exhausted', attempts: { length: 6 } })
    await clock.pass(3_600_000)
    expect(consumers.sent).toHaveLength(6)
  })

  test('a retry that becomes due between two readings of the clock is not missed', async () => {
    for (let step = 0.01; step < 1; step += 0.01) {
      const clock = new CreepingClock(step)
      const { store, consumers, open } = setUp({ retryDelaysMs: [60, 60, 60, 60] }, clock)
      consumers.rule = () => REFUSED
      const seq = store.add('a', clock)
      open('a')
      await clock.pass(400)
      expect(consumers.of(seq), `readings ${step} ms apart`).toHaveLength(5)
    }
  })

  test('the delay starts at the end of the attempt', async () => {
    const { clock, store, consumers, open } = setUp()
    consumers.rule = () => 'later'
    const seq = store.add('a', clock)
    open('a')
    await clock.pass(10_000)
    consumers.openOf('a')[0]?.end({ kind: 'failed', error: 'timeout' })
    await clock.pass(1_000)
    expect(gaps(consumers.of(seq))).toEqual([11_000])
    expect(store.rows[0]?.attempts[0]).toMatchObject({ durationMs: 10_000, error: 'timeout', status: null })
  })

  test('only a 2xx status ends a delivery', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 200, max: 599 }), async status => {
        const { clock, store, consumers, open } = setUp()
        consumers.rule = () => ({ kind: 'answered', status, excerpt: null })
        store.add('a', clock)
        open('a')
        await clock.settle()
        expect(store.rows[0]?.state).toBe(status < 300 ? 'delivered' : 'retry')
      }),
      { numRuns: 60 },
    )
  })

  test('retries keep their due times across a restart', async () => {
    const { clock, store, consumers, dispatcher, open } = setUp()
    consumers.rule = () => REFUSED
    const seq = store.add('a', clock)
    open('a')
    await clock.pass(1_000)
    await dispatcher.shut('a')
    await clock.pass(1_000)
    open('a')
    await clock.pass(36_000)
    expect(gaps(consumers.of(seq))).toEqual([1_000, 5_000, 30_000])
  })

  test('retries are on time behind a backlog of first attempts that hang', async () => {
    const { clock, store, consumers, open } = setUp()
    consumers.rule = ({ seq }) => (seq <= 2 ? REFUSED : 'later')
    for (let n = 0; n < 100; n += 1) store.add('a', clock, { quietly: true })
    open('a')
    await clock.pass(36_000)
    for (const seq of [1, 2]) expect(gaps(consumers.of(seq))).toEqual([1_000, 5_000, 30_000])
  })

  test('thousands of retries with different due times all start on time', async () => {
    const { clock, store, consumers, open } = setUp()
    consumers.rule = ({ attemptNumber }) => (attemptNumber === 1 ? REFUSED : OK)
    open('a')
    for (let n = 0; n < 1_500; n += 1) {
      store.add('a', clock)
      await clock.pass(1)
    }
    await clock.pass(2_000)
    expect(store.count('delivered')).toBe(1_500)
    const late = store.rows.map(({ delivery }) => gaps(consumers.of(delivery.seq))[0]! - 1_000)
    expect(Math.max(...late)).toBeLessThanOrEqual(1)
    expect(Math.min(...late)).toBeGreaterThanOrEqual(0)
  })

  test('a jump of the wall clock does not change the retry delays and causes no burst', async () => {
    for (const jump of [-3_600_000, 3_600_000]) {
      const { clock, store, consumers, open } = setUp()
      consumers.rule = () => REFUSED
      const seq = store.add('a', clock)
      open('a')
      await clock.pass(500)
      clock.jump(jump)
      await clock.pass(500)
      expect(gaps(consumers.of(seq))).toEqual([1_000])
      await clock.pass(5_000)
      expect(gaps(consumers.of(seq))).toEqual([1_000, 5_000])
      expect(consumers.sent.length).toBe(3)
    }
  })

  test('a retry whose attempt failed in the future, because the clock was set back, starts at once', async () => {
    const { clock, store, consumers, dispatcher, open } = setUp()
    consumers.rule = () => REFUSED
    const seq = store.add('a', clock)
    open('a')
    await clock.settle()
    await dispatcher.shut('a')
    const row = store.rows[0]!
    const { dueAt, failedAt } = row.delivery
    row.delivery = { ...row.delivery, dueAt: dueAt + 3_600_000, failedAt: failedAt! + 3_600_000 }
    open('a')
    await clock.settle()
    expect(consumers.of(seq)).toHaveLength(2)
  })
})

describe('order', () => {
  test('first attempts start in the order of the events', async () => {
    const { clock, store, consumers, open } = setUp()
    for (let n = 0; n < 200; n += 1) store.add('a', clock, { quietly: true })
    open('a')
    await clock.settle()
    await clock.pass(100)
    expect(consumers.sent.map(({ seq }) => seq)).toEqual(Array.from({ length: 200 }, (_, index) => index + 1))
  })

  test('a successor waits until its predecessor is delivered or exhausted, then starts before later events', async () => {
    const { clock, store, consumers, open } = setUp({ retryDelaysMs: [1_000] })
    const sent = store.add('a', clock, { quietly: true })
    const delivered = store.add('a', clock, { after: sent, quietly: true })
    const read = store.add('a', clock, { after: delivered, quietly: true })
    for (let n = 0; n < 50; n += 1) store.add('a', clock, { quietly: true })
    consumers.rule = ({ seq }) => (seq === sent ? REFUSED : 'later')
    open('a')
    await clock.pass(999)
    expect(consumers.of(delivered)).toHaveLength(0)
    await clock.pass(1)
    expect(store.rows[sent - 1]?.state).toBe('exhausted')
    expect(consumers.of(delivered)).toHaveLength(0)
    consumers.openOf('a')[0]?.end(OK)
    await clock.settle()
    expect(consumers.sent.at(-1)?.seq).toBe(delivered)
    consumers.of(delivered)[0]?.end(OK)
    await clock.settle()
    expect(consumers.sent.at(-1)?.seq).toBe(read)
  })
})

describe('isolation', () => {
  test('an instance has at most 8 requests in flight, 6 of them first attempts', async () => {
    const { clock, store, consumers, open } = setUp({ retryDelaysMs: [1_000, 1_000] })
    consumers.rule = ({ seq, attemptNumber }) => (seq <= 20 && attemptNumber === 1 ? REFUSED : 'later')
    for (let n = 0; n < 100; n += 1) store.add('a', clock, { quietly: true })
    open('a')
    await clock.pass(500)
    expect(consumers.openOf('a')).toHaveLength(6)
    await clock.pass(5_000)
    expect(consumers.openOf('a')).toHaveLength(8)
    expect(consumers.mostOpen.get('a')).toBe(8)
    expect(consumers.mostFirstsOpen.get('a')).toBe(6)
  })

  test('a backlog of retries leaves two attempts to new events', async () => {
    const { clock, store, consumers, open } = setUp({ retryDelaysMs: [1_000, 1_000] })
    consumers.rule = ({ attemptNumber }) => (attemptNumber === 1 ? REFUSED : 'later')
    for (let n = 0; n < 100; n += 1) store.add('a', clock, { quietly: true })
    open('a')
    await clock.pass(2_000)
    expect(consumers.openOf('a')).toHaveLength(8)
    consumers.rule = () => 'later'
    const fresh = [store.add('a', clock), store.add('a', clock)]
    for (let n = 0; n < 2; n += 1) {
      consumers.openOf('a')[0]?.end(OK)
      await clock.settle()
    }
    expect(fresh.map(seq => consumers.of(seq).length)).toEqual([1, 1])
  })

  test('a hundred dead consumers do not delay one that answers', async () => {
    const { clock, store, consumers, open } = setUp({ maxInFlight: 64 })
    consumers.rule = ({ instanceId }) => (instanceId === 'alive' ? OK : 'later')
    open('alive')
    store.add('alive', clock)
    await clock.settle()
    for (let dead = 0; dead < 100; dead += 1) {
      for (let n = 0; n < 20; n += 1) store.add(`dead${dead}`, clock, { quietly: true })
      open(`dead${dead}`)
    }
    for (let second = 0; second < 20; second += 1) {
      await clock.pass(1_000)
      const seq = store.add('alive', clock)
      await clock.settle()
      expect(consumers.of(seq)).toHaveLength(1)
      const openNow = [...consumers.open.values()].reduce((sum, { length }) => sum + length, 0)
      // Consumers of unknown speed have a limit of the same size.
      expect(openNow).toBeLessThanOrEqual(2 * 64)
    }
  })

  test('after a start with a hundred dead consumers, a consumer that answers gets its first event at once', async () => {
    const { clock, store, consumers, open } = setUp({ maxInFlight: 128 })
    consumers.rule = ({ instanceId }) => (instanceId.startsWith('alive') ? OK : 'later')
    for (let dead = 0; dead < 100; dead += 1) {
      for (let n = 0; n < 20; n += 1) store.add(`dead${dead}`, clock, { quietly: true })
      open(`dead${dead}`)
    }
    for (let second = 0; second < 20; second += 1) {
      open(`alive${second}`)
      const seqs = Array.from({ length: 20 }, () => store.add(`alive${second}`, clock))
      await clock.settle()
      expect(seqs.map(seq => consumers.of(seq).length)).toEqual(seqs.map(() => 1))
      await clock.pass(1_000)
    }
  })

  test('the number of reads does not grow with the backlog', async () => {
    const reads: number[] = []
    for (const waiting of [100, 10_000]) {
      const { clock, store, consumers, open } = setUp()
      consumers.rule = ({ instanceId }) => (instanceId === 'dead' ? 'later' : OK)
      for (let n = 0; n < waiting; n += 1) store.add('dead', clock, { quietly: true })
      open('dead')
      await clock.pass(10_000)
      reads.push(store.reads)
    }
    expect(reads[1]).toBe(reads[0])
  })

  test('an idle lane reads nothing and has no timer, except for the poll', async () => {
    const { clock, store, open } = setUp()
    open('a')
    await clock.settle()
    const before = store.reads
    const { timers } = clock
    expect(timers).toBe(1)
    await clock.pass(60_000)
    expect(store.reads - before).toBeLessThanOrEqual(3)
    expect(clock.timers).toBe(1)
  })

  test('an event whose hint was lost is posted within half a minute', async () => {
    const { clock, store, consumers, open } = setUp()
    for (const id of ['a', 'b', 'c']) open(id)
    await clock.settle()
    const seq = store.add('b', clock, { quietly: true })
    await clock.pass(31_000)
    expect(consumers.of(seq)).toHaveLength(1)
  })
})

describe('the secret', () => {
  test('each attempt is signed with the secrets that are valid at its time', async () => {
    const { clock, store, consumers, open } = setUp()
    consumers.rule = () => REFUSED
    const seq = store.add('a', clock)
    open('a')
    await clock.settle()
    store.secrets = { current: 'whsec_BBBB', previous: 'whsec_AAAA' }
    store.hints.give('webhook', 'a')
    await clock.pass(1_000)
    const [first, second] = consumers.of(seq)
    expect(first?.headers['X-Service-Signature']).not.toBe(second?.headers['X-Service-Signature'])
    expect(first?.headers['webhook-signature']?.split(' ')).toHaveLength(1)
    expect(second?.headers['webhook-signature']?.split(' ')).toHaveLength(2)
  })

  test('a rotation whose hint was lost takes effect within a second', async () => {
    const { clock, store, consumers, open } = setUp()
    const before = store.add('a', clock)
    open('a')
    await clock.settle()
    store.secrets = { current: 'whsec_BBBB', previous: null }
    await clock.pass(1_000)
    const after = store.add('a', clock)
    await clock.settle()
    const signature = (seq: number) => consumers.of(seq)[0]?.headers['webhook-signature']
    expect(signature(before)).toBeDefined()
    expect(signature(after)).not.toBe(signature(before))
  })
})

describe('failures', () => {
  test('while the store is unavailable an ended attempt is not repeated, and it is recorded afterwards', async () => {
    const { clock, store, consumers, open } = setUp()
    consumers.rule = () => 'later'
    const seq = store.add('a', clock)
    open('a')
    await clock.settle()
    store.unavailable = true
    consumers.openOf('a')[0]?.end(OK)
    await clock.pass(60_000)
    expect(consumers.of(seq)).toHaveLength(1)
    store.unavailable = false
    await clock.pass(5_000)
    expect(store.rows[0]).toMatchObject({ state: 'delivered', attempts: { length: 1 } })
    expect(consumers.of(seq)).toHaveLength(1)
  })

  test('no delivery is lost, repeated or out of order if the store becomes unavailable at any time', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 1, max: 3_000 })), { maxLength: 6 }),
        fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }),
        fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 20 }),
        async (outages, fails, trips) => {
          const { clock, store, consumers, open } = setUp({ retryDelaysMs: [10, 50, 300, 1_200, 6_000] })
          consumers.rule = ({ seq, attemptNumber }) => (fails[(seq * 7 + attemptNumber) % 40] ? REFUSED : OK)
          let trip = 0
          store.tripMs = () => trips[trip++ % trips.length]!
          open('a')
          for (let n = 0; n < 40; n += 1) {
            store.add('a', clock, n % 3 === 0 ? {} : { after: n })
            await clock.pass(n % 5)
          }
          for (const [afterMs, forMs] of outages) {
            await clock.pass(afterMs)
            store.unavailable = true
            await clock.pass(forMs)
            store.unavailable = false
          }
          await clock.pass(200_000)
          expect(store.count('delivered') + store.count('exhausted')).toBe(40)
          for (const { attempts, delivery } of store.rows) {
            expect(attempts.map(({ attemptNumber }) => attemptNumber)).toEqual(attempts.map((_, index) => index + 1))
            expect(consumers.of(delivery.seq)).toHaveLength(attempts.length)
          }
          for (const { waitsFor, delivery } of store.rows) {
            if (waitsFor === null) continue
            const [first, lastBefore] = [consumers.of(delivery.seq)[0]!, consumers.of(waitsFor).at(-1)!]
            expect(consumers.sent.indexOf(first)).toBeGreaterThan(consumers.sent.indexOf(lastBefore))
          }
          expect(consumers.mostOpen.get('a')).toBeLessThanOrEqual(8)
        },
      ),
      { numRuns: 60 },
    )
  })

  test('a lost lease stops the lane and is reported once', async () => {
    const { clock, store, consumers, open, lost } = setUp()
    for (let n = 0; n < 20; n += 1) store.add('a', clock, { quietly: true })
    consumers.rule = () => 'later'
    open('a')
    await clock.pass(1_000)
    store.epochs.set('a', 2)
    for (const sent of [...consumers.openOf('a')]) sent.end(OK)
    await clock.pass(60_000)
    expect(lost).toEqual(['a'])
    expect(consumers.sent).toHaveLength(6)
    expect(store.count('delivered')).toBe(0)
  })

  test('an instance that returns under a newer lease records its ended attempts and repeats none', async () => {
    const { clock, store, consumers, open } = setUp()
    for (let n = 0; n < 20; n += 1) store.add('a', clock, { quietly: true })
    consumers.rule = () => 'later'
    open('a')
    await clock.pass(1_000)
    store.epochs.set('a', 2)
    for (const sent of [...consumers.openOf('a')].slice(0, 3)) sent.end(OK)
    await clock.settle()
    open('a', 2)
    consumers.rule = () => OK
    for (const sent of [...consumers.openOf('a')]) sent.end(REFUSED)
    await clock.pass(5_000)
    expect(store.count('delivered')).toBe(20)
    expect(consumers.sent).toHaveLength(23)
  })

  test('shut waits for the attempts in flight, records them, and starts no others', async () => {
    const { clock, store, consumers, dispatcher, open } = setUp()
    for (let n = 0; n < 20; n += 1) store.add('a', clock, { quietly: true })
    consumers.rule = () => 'later'
    open('a')
    await clock.pass(1_000)
    let isShut = false
    const shut = dispatcher.shut('a').then(() => {
      isShut = true
    })
    await clock.pass(1_000)
    expect(isShut).toBe(false)
    for (const sent of [...consumers.openOf('a')]) sent.end(OK)
    await shut
    expect(store.count('delivered')).toBe(6)
    expect(consumers.sent).toHaveLength(6)
    expect(clock.timers).toBe(1)
  })

  test('shut aborts attempts that hang for 8 s and does not record them', async () => {
    const { clock, store, consumers, dispatcher, open } = setUp()
    const seq = store.add('a', clock)
    consumers.rule = () => 'later'
    open('a')
    await clock.settle()
    const closed = dispatcher.close()
    await clock.pass(8_000)
    await closed
    expect(store.rows[0]).toMatchObject({ state: 'first', attempts: { length: 0 } })
    expect(consumers.of(seq)).toHaveLength(1)
    expect(clock.timers).toBe(0)
  })

  test('the log has one line for each attempt, without the path of the URL and without the body', async () => {
    const { clock, store, open, log } = setUp()
    store.add('a', clock)
    open('a')
    await clock.settle()
    const lines = log.filter(({ msg }) => msg === 'delivery.attempted')
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatchObject({
      instanceId: 'a',
      eventId: 'evt_1',
      host: 'consumer.test',
      attemptNumber: 1,
      status: 200,
      error: null,
      durationMs: 0,
      next: 'delivered',
    })
    expect(JSON.stringify(lines)).not.toMatch(/consumer\.test\/|"n"|whsec/)
  })
})
