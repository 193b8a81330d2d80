import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DEFAULT_ENDPOINT } from '../domain/events/endpoint.ts'
import { systemClock } from '../kit/clock.ts'
import type { DueDelivery } from '../store/deliveries/deliveries.ts'
import { Claims } from './claim.ts'

const DELAYS_MS = [1_000, 5_000, 30_000]
const START = 1_000_000

function retry(seq: number, dueAt: number, attemptNumber = 2): DueDelivery {
  return {
    seq,
    instanceId: 'a',
    eventId: `evt_${seq}`,
    endpointId: DEFAULT_ENDPOINT,
    messageId: null,
    traceparent: null,
    requested: null,
    kind: 'message.sent',
    url: 'https://consumer.test/',
    body: new Uint8Array(),
    attemptNumber,
    dueAt,
    failedAt: dueAt - DELAYS_MS[attemptNumber - 2]!,
  }
}

/** A lane whose attempts end immediately, on a clock of whole milliseconds. */
class Table {
  readonly rows = new Map<number, DueDelivery>()
  readonly lateMs: number[] = []
  readonly order: number[] = []
  readonly firsts: DueDelivery[] = []
  reads = 0
  now = START
  /** A page that was read arrives when this resolves. */
  arrival: Promise<void> | undefined
  /** Called during each read. */
  onRead = () => {}
  readonly claims = new Claims({
    instanceId: 'a',
    endpointId: DEFAULT_ENDPOINT,
    deliveries: {
      listFirst: async () => {
        const page = [...this.firsts]
        await this.arrival
        this.onRead()
        return page
      },
      listRetries: async (_instanceId, limit) => {
        this.reads += 1
        const page = [...this.rows.values()].sort((a, b) => a.dueAt - b.dueAt || a.seq - b.seq).slice(0, limit)
        await this.arrival
        this.onRead()
        return page
      },
    },
    clock: { ...systemClock, steady: () => this.now },
    consumer: { speed: 'fast' },
  })

  fail(seq: number, attemptNumber: number): void {
    this.add(retry(seq, this.now + DELAYS_MS[attemptNumber - 2]!, attemptNumber))
  }

  add(row: DueDelivery): void {
    this.rows.set(row.seq, row)
    this.claims.release(row, row.dueAt)
  }

  /** @param startable how many may start in this millisecond */
  async tick(startable: number): Promise<void> {
    await this.read()
    for (let left = startable; left > 0; left -= 1) {
      const next = this.claims.peek(this.now, false)
      if (!next) break
      this.claims.claim(next)
      this.rows.delete(next.seq)
      this.lateMs.push(this.now - next.dueAt)
      this.order.push(next.dueAt)
      this.claims.release(next, 'none')
      await this.read()
    }
    this.now += 1
  }

  async read(): Promise<void> {
    await readPages(this.claims, () => this.now)
  }
}

/** Reads as a lane does: page after page until enough is in memory, or until `onPage` returns false. */
async function readPages(
  claims: Claims,
  now: () => number,
  onPage: (areFirsts: boolean) => boolean = () => true,
): Promise<void> {
  for (let page = claims.nextPage(now()); page !== null; page = claims.nextPage(now())) {
    await claims.read(page)
    if (!onPage(page === 'firsts')) return
  }
}

describe('retries', () => {
  test('start at their due time, the earliest first', async () => {
    const burst = fc.record({
      atMs: fc.integer({ min: 0, max: 8_000 }),
      count: fc.integer({ min: 1, max: 150 }),
      attemptNumber: fc.integer({ min: 2, max: 4 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(burst, { minLength: 1, maxLength: 8 }), async bursts => {
        const table = new Table()
        let seq = 0
        while (table.now < START + 40_000) {
          for (const { count, attemptNumber } of bursts.filter(({ atMs }) => START + atMs === table.now)) {
            for (let n = 0; n < count; n += 1) table.fail(++seq, attemptNumber)
          }
          await table.tick(Number.POSITIVE_INFINITY)
        }
        expect(table.lateMs).toHaveLength(seq)
        expect(Math.max(...table.lateMs)).toBe(0)
      }),
      { numRuns: 25 },
    )
  })

  test('that a node with a clock ahead requested start at once', async () => {
    const table = new Table()
    const requested = { at: START + 3_600_000, scheduledAt: START + 60_000 }
    table.rows.set(1, { ...retry(1, requested.at), requested })
    await table.tick(1)
    expect(table.lateMs).toEqual([0])
  })

  test('start in the order of their due times even if they are late', async () => {
    const table = new Table()
    for (let seq = 1; seq <= 500; seq += 1) {
      table.fail(seq, 2)
      await table.tick(0)
    }
    while (table.rows.size > 0) await table.tick(table.now % 3 === 0 ? 1 : 0)
    expect(table.order).toEqual(table.order.toSorted((a, b) => a - b))
  })

  test('that are added during a read do not delay retries that are still unread', async () => {
    const table = new Table()
    for (let seq = 1; seq <= 100; seq += 1) table.rows.set(seq, retry(seq, START + 500 + seq))
    const { promise, resolve } = Promise.withResolvers<void>()
    table.arrival = promise
    const reading = table.read()
    for (let seq = 101; seq <= 120; seq += 1) table.add(retry(seq, START + 700 + seq))
    resolve()
    await reading
    for (let ms = 0; ms < 1_000; ms += 1) await table.tick(10)
    expect(table.order).toHaveLength(120)
    expect(Math.max(...table.lateMs)).toBe(0)
  })

  test('are read rarely: later retries cost one read shortly before they are due', async () => {
    const table = new Table()
    for (let seq = 1; seq <= 20; seq += 1) table.fail(seq, 4)
    for (let ms = 0; ms < 27_000; ms += 1) await table.tick(1)
    expect(table.reads).toBeLessThanOrEqual(2)
    for (let ms = 0; ms < 4_000; ms += 1) await table.tick(1)
    expect(table.order).toHaveLength(20)
    expect(table.reads).toBeLessThanOrEqual(4)
  })

  test('of attempts that fail one after the other share a read', async () => {
    const table = new Table()
    for (let ms = 0; ms < 5_000; ms += 1) {
      if (ms % 50 === 0) table.add(retry(ms, table.now + 1_000))
      await table.tick(1)
    }
    expect(Math.max(...table.lateMs)).toBe(0)
    expect(table.reads).toBeLessThanOrEqual(15)
  })

  test('in memory start at their time while they are read again because of a hint', async () => {
    const table = new Table()
    table.rows.set(1, retry(1, START + 100))
    await table.tick(1)
    table.arrival = new Promise(() => {})
    table.claims.invalidateRetries()
    void table.read()
    expect(table.claims.peek(START + 100, false)?.seq).toBe(1)
  })

  test('and first attempts both start during a stream of hints', async () => {
    const table = new Table()
    table.rows.set(1, retry(1, START))
    table.firsts.push({ ...retry(2, START), attemptNumber: 1 })
    table.onRead = () => {
      table.claims.invalidateFirsts()
      table.claims.invalidateRetries()
    }
    const started: number[] = []
    let pages = 0
    await readPages(
      table.claims,
      () => table.now,
      areFirsts => {
        const next = table.claims.peek(table.now, areFirsts)
        if (next) {
          table.claims.claim(next)
          started.push(next.seq)
        }
        pages += 1
        return pages < 4
      },
    )
    expect(started).toEqual([1, 2])
  })

  test('are not read while none can start', async () => {
    const table = new Table()
    for (let seq = 1; seq <= 8; seq += 1) table.claims.claim(retry(seq, START))
    table.claims.invalidateRetries()
    await table.read()
    expect(table.reads).toBe(0)
    table.claims.release(retry(1, START), 'none')
    await table.read()
    expect(table.reads).toBe(1)
  })
})

describe('first attempts', () => {
  test('do not overtake one that was claimed but not made, even if they are being read', async () => {
    const table = new Table()
    const [earlier, later] = [1, 2].map(seq => ({ ...retry(seq, START), attemptNumber: 1 }))
    await table.read()
    table.claims.claim(earlier!)
    table.firsts.push(earlier!, later!)
    table.claims.invalidateFirsts()
    table.onRead = () => table.claims.release(earlier!, 'unknown')
    const started: (number | undefined)[] = []
    await readPages(
      table.claims,
      () => table.now,
      areFirsts => {
        table.onRead = () => {}
        started.push(table.claims.peek(table.now, areFirsts)?.seq)
        return true
      },
    )
    expect(started.find(seq => seq !== undefined)).toBe(1)
  })

  test.each([
    { speed: 'fast', pageSize: 32, low: 8 },
    { speed: 'slow', pageSize: 8, low: 1 },
  ] as const)('of a $speed consumer: $pageSize are read when fewer than $low are left', async consumer => {
    const { pageSize, low } = consumer
    const queries: { afterSeq: number; limit: number }[] = []
    const claims = new Claims({
      instanceId: 'a',
      endpointId: DEFAULT_ENDPOINT,
      deliveries: {
        listFirst: async (_instanceId, afterSeq, limit) => {
          queries.push({ afterSeq, limit })
          return Array.from({ length: limit }, (_, index) => ({ ...retry(index + 1, 0), attemptNumber: 1 }))
        },
        listRetries: async () => [],
      },
      clock: systemClock,
      consumer,
    })
    for (const seq of [-1, 0]) claims.claim(retry(seq, 0, 1))
    await readPages(claims, systemClock.steady, () => queries.length === 0)
    expect(queries).toEqual([{ afterSeq: 0, limit: pageSize + 2 }])
    while (claims.nextPage(systemClock.steady()) === null) {
      const next = claims.peek(0, false)!
      claims.claim(next)
      claims.release(next, 'none')
    }
    expect(claims.peek(0, false)?.seq).toBe(low === 1 ? undefined : pageSize + 2 - (low - 2))
  })
})
