import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { waitAtMost, withDeadline } from './deadline.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const never = () => new Promise<never>(() => undefined)

test('work that ends before the deadline keeps its outcome and leaves no timer', async () => {
  await expect(withDeadline(10, Promise.resolve('done'))).resolves.toBe('done')
  await expect(withDeadline(10, Promise.reject(new Error('failed')))).rejects.toThrow('failed')
  expect(vi.getTimerCount()).toBe(0)
})

test('work that misses its deadline is an error', async () => {
  const late = expect(withDeadline(10, never())).rejects.toThrow('No answer within 10 ms.')
  await vi.advanceTimersByTimeAsync(10)
  await late
})

test('waitAtMost resolves when the work succeeds or fails, or at the deadline', async () => {
  await waitAtMost(10, undefined)
  await waitAtMost(10, Promise.reject(new Error('failed')))
  expect(vi.getTimerCount()).toBe(0)
  const late = waitAtMost(10, never())
  await vi.advanceTimersByTimeAsync(10)
  await late
})
