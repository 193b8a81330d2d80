import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DEFAULT_ENDPOINT } from '../domain/events/endpoint.ts'
import type { DueDelivery } from '../store/deliveries/deliveries.ts'
import { Retries } from './retries.ts'

const DELAYS_MS = [1_000, 5_000, 30_000]
const START = 1_000_000

function retry(seq: number, dueAt: number, attemptNumber = 2): DueDelivery {
  return {
    seq,
    id: `${seq}`,
    instanceId: 'a',
    eventId: `evt_${seq}`,
    endpointId: DEFAULT_ENDPOINT,
    requested: null,
    kind: 'message.sent',
    url: 'https://consumer.test/',
    body: new Uint8Array(),
    attemptNumber,
    dueAt,
    failedAt: dueAt - DELAYS_MS[attemptNumber - 2]!,
  }
}

/** A lane with retries only, which end at once, on a clock of whole milliseconds. */
class Table {
  readonly rows = new Map<string, DueDelivery>()
  readonly retries = new Retries()
  readonly lateMs: number[] = []
  readonly order: number[] = []
  reads = 0
  now = START

  fail(seq: number, attemptNumber: number): void {
    const row = retry(seq, this.now + DELAYS_MS[attemptNumber - 2]!, attemptNumber)
    this.rows.set(row.id, row)
    this.retries.add(row, this.now)
  }

  /** @param startable how many may start in this millisecond */
  tick(startable: number): void {
    this.#read()
    for (let left = startable; left > 0; left -= 1) {
      const next = this.retries.peek()
      if (!next || next.dueAt > this.now) break
      this.retries.shift()
      this.rows.delete(next.id)
      this.lateMs.push(this.now - next.dueAt)
      this.order.push(next.dueAt)
      this.#read()
    }
    this.now += 1
  }

  #read(): void {
    if (this.retries.readAt > this.now) return
    this.reads += 1
    const limit = this.retries.beginRead(0)
    const page = [...this.rows.values()].sort((a, b) => a.dueAt - b.dueAt || a.seq - b.seq).slice(0, limit)
    this.retries.endRead(limit, page, new Set(), this.now)
  }
}

describe('retries', () => {
  test('start at their due time, the earliest first', () => {
    const burst = fc.record({
      atMs: fc.integer({ min: 0, max: 8_000 }),
      count: fc.integer({ min: 1, max: 150 }),
      attemptNumber: fc.integer({ min: 2, max: 4 }),
    })
    fc.assert(
      fc.property(fc.array(burst, { minLength: 1, maxLength: 8 }), bursts => {
        const table = new Table()
        let seq = 0
        while (table.now < START + 40_000) {
          for (const { count, attemptNumber } of bursts.filter(({ atMs }) => START + atMs === table.now)) {
            for (let n = 0; n < count; n += 1) table.fail(++seq, attemptNumber)
          }
          table.tick(Number.POSITIVE_INFINITY)
        }
        expect(table.lateMs).toHaveLength(seq)
        expect(Math.max(...table.lateMs)).toBe(0)
      }),
      { numRuns: 25 },
    )
  })

  test('start in the order of their due times even if they are late', () => {
    const table = new Table()
    for (let seq = 1; seq <= 500; seq += 1) {
      table.fail(seq, 2)
      table.tick(0)
    }
    while (table.rows.size > 0) table.tick(table.now % 3 === 0 ? 1 : 0)
    expect(table.order).toEqual(table.order.toSorted((a, b) => a - b))
  })

  test('that are added during a read do not delay retries that are still unread', () => {
    const table = new Table()
    for (let seq = 1; seq <= 100; seq += 1) table.rows.set(`${seq}`, retry(seq, START + 500 + seq))
    const limit = table.retries.beginRead(0)
    const page = [...table.rows.values()].slice(0, limit)
    for (let seq = 101; seq <= 120; seq += 1) {
      const row = retry(seq, START + 700 + seq)
      table.rows.set(row.id, row)
      table.retries.add(row, START)
    }
    table.retries.endRead(limit, page, new Set(), START)
    for (let ms = 0; ms < 1_000; ms += 1) table.tick(10)
    expect(table.order).toHaveLength(120)
    expect(Math.max(...table.lateMs)).toBe(0)
  })

  test('are read rarely: later retries cost one read shortly before they are due', () => {
    const table = new Table()
    for (let seq = 1; seq <= 20; seq += 1) table.fail(seq, 4)
    for (let ms = 0; ms < 27_000; ms += 1) table.tick(1)
    expect(table.reads).toBeLessThanOrEqual(2)
    for (let ms = 0; ms < 4_000; ms += 1) table.tick(1)
    expect(table.order).toHaveLength(20)
    expect(table.reads).toBeLessThanOrEqual(4)
  })
})
