import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ConnectionPacing } from './connection-pacing.ts'

const signal = new AbortController().signal

/** An event loop that is always busy, or never. */
function loopBusy(utilization: 0 | 1) {
  return () => ({ idle: 1 - utilization, active: utilization, utilization })
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('the first caller proceeds at once; many callers proceed one by one, in order, at intervals', async () => {
  const pacing = new ConnectionPacing(loopBusy(0))
  const gone: number[] = []
  for (let n = 0; n < 5; n++) void pacing.take({}, signal).then(() => gone.push(n))
  await vi.advanceTimersByTimeAsync(0)
  expect(gone).toEqual([0])
  await vi.advanceTimersByTimeAsync(50)
  expect(gone).toEqual([0, 1, 2])
  await vi.advanceTimersByTimeAsync(50)
  expect(gone).toEqual([0, 1, 2, 3, 4])
})

test('urgent callers go first, in order, even if they become urgent while they wait', async () => {
  const pacing = new ConnectionPacing(loopBusy(0))
  const gone: string[] = []
  const late = {}
  await pacing.take({}, signal)
  void pacing.take({}, signal).then(() => gone.push('not urgent'))
  void pacing.take(late, signal).then(() => gone.push('urgent later'))
  void pacing.take({}, signal, true).then(() => gone.push('urgent'))
  pacing.hurry(late)
  pacing.hurry({})
  await vi.advanceTimersByTimeAsync(75)
  expect(gone).toEqual(['urgent', 'urgent later', 'not urgent'])
})

test('an aborted caller resolves at once and does not delay the next one', async () => {
  const pacing = new ConnectionPacing(loopBusy(0))
  const stop = new AbortController()
  const gone: string[] = []
  await pacing.take({}, signal)
  void pacing.take({}, stop.signal).then(() => gone.push('stopped'))
  void pacing.take({}, signal).then(() => gone.push('next'))
  stop.abort()
  await vi.advanceTimersByTimeAsync(0)
  expect(gone).toEqual(['stopped'])
  await vi.advanceTimersByTimeAsync(25)
  expect(gone).toEqual(['stopped', 'next'])
})

test('a caller after the interval proceeds at once', async () => {
  const pacing = new ConnectionPacing(loopBusy(0))
  await pacing.take({}, signal)
  await vi.advanceTimersByTimeAsync(25)
  await pacing.take({}, signal)
})

test('on a busy event loop the interval is longer, but limited', async () => {
  const pacing = new ConnectionPacing(loopBusy(1))
  const gone: number[] = []
  for (let n = 0; n < 3; n++) void pacing.take({}, signal).then(() => gone.push(n))
  await vi.advanceTimersByTimeAsync(99)
  expect(gone).toEqual([0])
  await vi.advanceTimersByTimeAsync(1)
  expect(gone).toEqual([0, 1])
  await vi.advanceTimersByTimeAsync(100)
  expect(gone).toEqual([0, 1, 2])
})
