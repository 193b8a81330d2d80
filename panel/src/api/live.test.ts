import { QueryClient, QueryObserver } from '@tanstack/react-query'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ChangeBatch } from './live.ts'

const BATCHED_WITHIN_MS = 300

/** A page that shows one query. Its reads end when the test says so. */
function show(queryKey: unknown[], meta?: { live: false }) {
  const client = new QueryClient()
  const reads: { end: (value: number) => void; signal: AbortSignal }[] = []
  const queryFn = ({ signal }: { signal: AbortSignal }) =>
    new Promise<number>(resolve => reads.push({ end: resolve, signal }))
  const observer = new QueryObserver(client, { queryKey, queryFn, ...(meta && { meta }) })
  const batch = new ChangeBatch(client)
  const stop = observer.subscribe(() => {})
  onTestFinished(() => {
    stop()
    batch.stop()
    client.clear()
  })
  return { client, reads, batch, observer }
}

test('changes do not abort a read that is running; the data is read once more after it', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { reads, batch, observer } = show(['message', 'inst_1', 'msg_1'])
  reads[0]!.end(1)
  await vi.waitFor(() => expect(observer.getCurrentResult().data).toBe(1))
  batch.add({ instanceId: 'inst_1', what: 'log' })
  await vi.waitFor(() => expect(reads).toHaveLength(2))
  for (let change = 0; change < 3; change += 1) {
    batch.add({ instanceId: 'inst_1', what: 'log' })
    await vi.advanceTimersByTimeAsync(BATCHED_WITHIN_MS)
  }
  expect(reads).toHaveLength(2)
  expect(reads[1]!.signal.aborted).toBe(false)
  reads[1]!.end(2)
  await vi.waitFor(() => expect(observer.getCurrentResult().data).toBe(2))
  await vi.waitFor(() => expect(reads).toHaveLength(3))
  reads[2]!.end(3)
  await vi.waitFor(() => expect(observer.getCurrentResult().data).toBe(3))
})

test('the counts of redeliveries are read at most every 3 seconds', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { reads, batch } = show(['counts', 'inst_1', 'today'])
  reads[0]!.end(1)
  await vi.advanceTimersByTimeAsync(0)
  batch.add({ instanceId: 'inst_1', what: 'log' })
  await vi.advanceTimersByTimeAsync(2_900)
  expect(reads).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(200)
  expect(reads).toHaveLength(2)
})

test('a refresh of everything skips queries that are not live', async () => {
  const { client, reads, batch } = show(['audit', {}], { live: false })
  reads[0]!.end(1)
  const live = vi.fn(async () => 1)
  const other = new QueryObserver(client, { queryKey: ['links', 'inst_1'], queryFn: live })
  onTestFinished(other.subscribe(() => {}))
  await vi.waitFor(() => expect(live).toHaveBeenCalledTimes(1))
  batch.addEverything()
  await vi.waitFor(() => expect(live).toHaveBeenCalledTimes(2))
  expect(reads).toHaveLength(1)
})
