import { expect, it } from 'vitest'
import { Turns } from './turns.ts'

/** More than begins at once. */
const PIECE_MS = 12

function burn(): void {
  const until = performance.now() + PIECE_MS
  while (performance.now() < until);
}

/** As a connection does: the next piece is asked for when the one before is done. */
async function work(turns: Turns, name: string, pieces: number, log: string[]): Promise<void> {
  for (let left = pieces; left > 0; left -= 1) {
    await turns.next()
    burn()
    log.push(name)
  }
}

it('gives each that has work one piece in turn, however much the others have', async () => {
  const turns = new Turns()
  const log: string[] = []
  await Promise.all([work(turns, 'busy', 30, log), work(turns, 'other', 3, log)])
  expect(log.slice(0, 7).filter(name => name === 'other')).toHaveLength(3)
  expect(log).toHaveLength(33)
})

it('lets the event loop go round while there is work', async () => {
  const turns = new Turns()
  const log: string[] = []
  const done = work(turns, 'busy', 30, log)
  await new Promise(resolve => setTimeout(resolve, 0))
  expect(log.length).toBeLessThan(5)
  await done
})

it('makes a single piece wait for nothing', async () => {
  let begun = false
  void new Turns().next().then(() => {
    begun = true
  })
  await Promise.resolve()
  await Promise.resolve()
  expect(begun).toBe(true)
})
