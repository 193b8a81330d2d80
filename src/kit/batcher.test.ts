import { expect, test, vi } from 'vitest'
import { Gatherer } from './batcher.ts'

test('the first work runs at once, what follows within the window runs together at its end, and nothing is left', () => {
  vi.useFakeTimers()
  try {
    const ran: string[] = []
    const gatherer = new Gatherer(5)
    gatherer.run(() => ran.push('first'))
    gatherer.run(() => ran.push('second'))
    gatherer.run(() => ran.push('third'))
    expect(ran).toEqual(['first'])
    vi.advanceTimersByTime(5)
    expect(ran).toEqual(['first', 'second', 'third'])
    vi.advanceTimersByTime(5)
    expect(vi.getTimerCount()).toBe(0)
    gatherer.run(() => ran.push('at once again'))
    expect(ran).toContain('at once again')
  } finally {
    vi.useRealTimers()
  }
})
