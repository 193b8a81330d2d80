import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ReadHistory } from './read-history.ts'

test('a position is settled within a second after it is a minute old, and never earlier', () => {
  const reads = fc.array(fc.record({ afterMs: fc.nat(5_000), rows: fc.nat(300) }), { maxLength: 200 })
  fc.assert(
    fc.property(reads, drawn => {
      const history = new ReadHistory()
      const noted: { at: number; seq: number }[] = []
      const highestAt = (time: number) => noted.findLast(({ at }) => at <= time)?.seq ?? 0
      let now = 0
      let seq = 0
      for (const { afterMs, rows } of drawn) {
        now += afterMs
        const settled = history.settledTo(now)
        expect(settled).toBeLessThanOrEqual(highestAt(now - 60_000))
        expect(settled).toBeGreaterThanOrEqual(highestAt(now - 61_000))
        seq += rows
        history.note([{ seq }], now)
        noted.push({ at: now, seq })
      }
    }),
  )
})

test('reading earlier rows again does not make a position unsettled', () => {
  const history = new ReadHistory()
  history.note([{ seq: 5_000 }], 0)
  history.note([{ seq: 200 }], 10_000)
  history.note([{ seq: 5_001 }], 20_000)
  expect(history.settledTo(70_000)).toBe(5_000)
})

test('the lowest number that no read has found is unread; after two minutes, numbers are forgotten', () => {
  const history = new ReadHistory()
  const rows = (...numbers: number[]) => numbers.map(seq => ({ seq }))
  history.note(rows(1, 2, 5), 0)
  expect(history.firstUnread([1, 2, 5])).toBe(null)
  expect(history.firstUnread([1, 2, 3, 4, 5])).toBe(3)
  history.note(rows(3, 4, 8), 61_000)
  expect(history.firstUnread([1, 2, 3, 4, 5, 8])).toBe(null)
  history.note(rows(9), 122_000)
  expect(history.firstUnread([8, 9])).toBe(null)
  expect(history.firstUnread([5, 8, 9])).toBe(5)
})
