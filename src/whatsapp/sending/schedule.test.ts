import { expect, test, vi } from 'vitest'
import { CONDITION_WITHIN_MS } from '../../../test/deadlines.ts'
import { StoreUnavailable } from '../../store/errors.ts'
import { Schedule } from './schedule.ts'

test('a scheduled message is released as soon as the store works again', async () => {
  const releaseDue = vi.fn(async (): Promise<number | null> => null)
  releaseDue.mockRejectedValueOnce(new StoreUnavailable('full'))
  const onFailed = vi.fn()
  const { signal } = new AbortController()
  const lease = { instanceId: 'inst_0', owner: 'node', epoch: 1 }
  const schedule = new Schedule({ lease, messages: { releaseDue }, now: Date.now, signal, onFailed })
  schedule.start()
  await vi.waitFor(() => expect(releaseDue).toHaveBeenCalledTimes(2), CONDITION_WITHIN_MS)
  schedule.stop()
  expect(onFailed).not.toHaveBeenCalled()
})
