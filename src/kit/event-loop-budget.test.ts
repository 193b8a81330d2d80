import { expect, test } from 'vitest'
import { Turns } from './event-loop-budget.ts'

test('a crowd begins a few at a time, in order, and the event loop turns in between', async () => {
  const turns = new Turns()
  const begun: number[] = []
  const all = Promise.all(Array.from({ length: 10 }, (_, index) => turns.take().then(() => begun.push(index))))
  const counts: number[] = []
  while (begun.length < 10) {
    await new Promise(resolve => setImmediate(resolve))
    counts.push(begun.length)
  }
  await all
  expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  expect(Math.max(...counts.map((count, index) => count - (counts[index - 1] ?? 0)))).toBeLessThanOrEqual(4)
})
