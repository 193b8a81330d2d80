import { expect, it } from 'vitest'
import { EventLoopBudget } from './event-loop-budget.ts'

/** Longer than the budget. */
const PIECE_MS = 12

function burn(): void {
  const until = performance.now() + PIECE_MS
  while (performance.now() < until);
}

/** Works as a connection does: it requests the next piece when the last one has ended. */
async function work(budget: EventLoopBudget, name: string, pieces: number, log: string[]): Promise<void> {
  for (let left = pieces; left > 0; left -= 1) {
    await budget.next()
    burn()
    log.push(name)
  }
}

it('connections with pending work get one piece each in turn, however much the others have', async () => {
  const budget = new EventLoopBudget()
  const log: string[] = []
  await Promise.all([work(budget, 'busy', 30, log), work(budget, 'other', 3, log)])
  expect(log.slice(0, 7).filter(name => name === 'other')).toHaveLength(3)
  expect(log).toHaveLength(33)
})

it('the event loop runs while there is work', async () => {
  const budget = new EventLoopBudget()
  const log: string[] = []
  const done = work(budget, 'busy', 30, log)
  // A timer, like other work of the event loop.
  await new Promise(resolve => setTimeout(resolve, 0))
  expect(log.length).toBeLessThan(5)
  await done
})

it('a single piece starts at once', async () => {
  let begun = false
  void new EventLoopBudget().next().then(() => {
    begun = true
  })
  await Promise.resolve()
  await Promise.resolve()
  expect(begun).toBe(true)
})
