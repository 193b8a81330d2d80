import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ReadHistory } from './read-history.ts'

test('a position is settled once it is a minute old, at most a second later, and never before', () => {
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
        history.note(seq, now)
        noted.push({ at: now, seq })
      }
    }),
  )
})

test('reading earlier rows again does not make a position unsettled', () => {
  const history = new ReadHistory()
  history.note(5_000, 0)
  history.note(200, 10_000)
  history.note(5_001, 20_000)
  expect(history.settledTo(70_000)).toBe(5_000)
})
