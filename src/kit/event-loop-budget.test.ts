import { expect, test } from 'vitest'
import { EventLoopBudget } from './event-loop-budget.ts'

test('at most four of many callers start in one turn of the event loop, in order', async () => {
  const budget = new EventLoopBudget()
  const started: number[] = []
  const all = Promise.all(Array.from({ length: 10 }, (_, index) => budget.take().then(() => started.push(index))))
  const counts: number[] = []
  while (started.length < 10) {
    await new Promise(resolve => setImmediate(resolve))
    counts.push(started.length)
  }
  await all
  expect(started).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  expect(Math.max(...counts.map((count, index) => count - (counts[index - 1] ?? 0)))).toBeLessThanOrEqual(4)
})

test('a busy owner delays each piece of the others’ work by only one piece of its own', async () => {
  const budget = new EventLoopBudget(1)
  const started: string[] = []
  const take = (owner: string) => budget.take(owner).then(() => started.push(owner))
  const busy = Array.from({ length: 100 }, () => ['a', 'b'].map(take)).flat()
  await Promise.all([take('c'), take('c')])
  expect(started.filter(owner => owner !== 'c')).toHaveLength(4)
  await Promise.all(busy)
  expect(started).toHaveLength(202)
})
