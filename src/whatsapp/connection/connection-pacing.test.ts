import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ConnectionPacing } from './connection-pacing.ts'

const signal = new AbortController().signal

/** Of an event loop that is at work all the time, or never. */
function loopBusy(utilization: 0 | 1) {
  return () => ({ idle: 1 - utilization, active: utilization, utilization })
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('the first one waits for nobody; a crowd goes one by one, in order, spread over time', async () => {
  const pacing = new ConnectionPacing(loopBusy(0))
  const gone: number[] = []
  for (let n = 0; n < 5; n++) void pacing.take(signal).then(() => gone.push(n))
  await vi.advanceTimersByTimeAsync(0)
  expect(gone).toEqual([0])
  await vi.advanceTimersByTimeAsync(50)
  expect(gone).toEqual([0, 1, 2])
  await vi.advanceTimersByTimeAsync(50)
  expect(gone).toEqual([0, 1, 2, 3, 4])
})

test('whoever gives up waits no longer and takes nobody’s turn', async () => {
  const pacing = new ConnectionPacing(loopBusy(0))
  const stop = new AbortController()
  const gone: string[] = []
  await pacing.take(signal)
  void pacing.take(stop.signal).then(() => gone.push('stopped'))
  void pacing.take(signal).then(() => gone.push('next'))
  stop.abort()
  await vi.advanceTimersByTimeAsync(0)
  expect(gone).toEqual(['stopped'])
  await vi.advanceTimersByTimeAsync(25)
  expect(gone).toEqual(['stopped', 'next'])
})

test('after a rest the next one goes at once again', async () => {
  const pacing = new ConnectionPacing(loopBusy(0))
  await pacing.take(signal)
  await vi.advanceTimersByTimeAsync(25)
  await pacing.take(signal)
})

test('on a busy processor they go further apart, but they go', async () => {
  const pacing = new ConnectionPacing(loopBusy(1))
  const gone: number[] = []
  for (let n = 0; n < 3; n++) void pacing.take(signal).then(() => gone.push(n))
  await vi.advanceTimersByTimeAsync(99)
  expect(gone).toEqual([0])
  await vi.advanceTimersByTimeAsync(1)
  expect(gone).toEqual([0, 1])
  await vi.advanceTimersByTimeAsync(100)
  expect(gone).toEqual([0, 1, 2])
})
