import { expect, test, vi } from 'vitest'
import { Batcher } from './batcher.ts'

test('the first work runs at once, later work runs together when the window ends, and no timer remains', async () => {
  vi.useFakeTimers()
  try {
    const ran: string[] = []
    const batcher = new Batcher(5)
    const run = (label: string) => void batcher.turn().then(() => ran.push(label))
    for (const label of ['first', 'second', 'third']) run(label)
    await vi.advanceTimersByTimeAsync(0)
    expect(ran).toEqual(['first'])
    await vi.advanceTimersByTimeAsync(5)
    expect(ran).toEqual(['first', 'second', 'third'])
    await vi.advanceTimersByTimeAsync(5)
    expect(vi.getTimerCount()).toBe(0)
    run('at once again')
    await vi.advanceTimersByTimeAsync(0)
    expect(ran).toContain('at once again')
  } finally {
    vi.useRealTimers()
  }
})
