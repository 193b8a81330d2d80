import fc from 'fast-check'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Agenda } from './agenda.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

it('every task runs at its time, the earliest first, whatever order they were added in', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 500 }), { maxLength: 60 }), delays => {
      const agenda = new Agenda()
      const start = Date.now()
      const ran: number[] = []
      for (const delay of delays) agenda.add(start + delay, () => ran.push(Date.now() - start))
      vi.advanceTimersByTime(500)
      expect(ran).toEqual([...delays].sort((a, b) => a - b))
      expect(vi.getTimerCount()).toBe(0)
    }),
  )
})

it('the agenda holds one timer, and none once closed', () => {
  const agenda = new Agenda()
  const ran: number[] = []
  for (let n = 0; n < 100; n++) agenda.add(Date.now() + n, () => ran.push(n))
  expect(vi.getTimerCount()).toBe(1)
  agenda.close()
  agenda.add(Date.now(), () => ran.push(-1))
  vi.advanceTimersByTime(1000)
  expect(vi.getTimerCount()).toBe(0)
  expect(ran).toEqual([])
})

it('a task runs after its delay, although the clock is set back, and the furthest task waits', () => {
  const agenda = new Agenda()
  const ran: string[] = []
  agenda.add(Date.now() + 2 ** 33, () => ran.push('far'))
  agenda.add(Date.now() + 100, () => ran.push('near'))
  vi.setSystemTime(Date.now() - 86_400_000)
  vi.advanceTimersByTime(100)
  const timers = vi.spyOn(globalThis, 'setTimeout')
  vi.advanceTimersByTime(1_000)
  expect(ran).toEqual(['near'])
  expect(timers).not.toHaveBeenCalled()
  agenda.close()
})
