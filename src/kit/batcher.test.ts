import { expect, test, vi } from 'vitest'
import { Batcher } from './batcher.ts'

test('the first work runs at once, later work runs together when the window ends, and no timer remains', () => {
  vi.useFakeTimers()
  try {
    const ran: string[] = []
    const batcher = new Batcher(5)
    batcher.run(() => ran.push('first'))
    batcher.run(() => ran.push('second'))
    batcher.run(() => ran.push('third'))
    expect(ran).toEqual(['first'])
    vi.advanceTimersByTime(5)
    expect(ran).toEqual(['first', 'second', 'third'])
    vi.advanceTimersByTime(5)
    expect(vi.getTimerCount()).toBe(0)
    batcher.run(() => ran.push('at once again'))
    expect(ran).toContain('at once again')
  } finally {
    vi.useRealTimers()
  }
})
