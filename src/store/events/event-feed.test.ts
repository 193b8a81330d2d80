import { expect, test } from 'vitest'
import type { Core } from '../engine/core.ts'
import { Statements } from '../engine/statement.ts'
import { StoreUnavailable } from '../errors.ts'
import { EventFeed } from './event-feed.ts'

/** A feed with one event, whose commit has not reached the disk. */
function feedBeforeSync(): { feed: EventFeed; synced: PromiseWithResolvers<void> } {
  const synced = Promise.withResolvers<void>()
  const row = { id: 'evt_1', seq: 1, kind: 'message.sent', body: '{}', bytes: 2, last: 1, erased: null, at: null }
  const reader = { run: async () => [row], untilSynced: () => synced.promise }
  return { feed: new EventFeed({ statements: new Statements('sqlite'), reader } as unknown as Core), synced }
}

const reads = {
  'a page': (feed: EventFeed) => feed.read('inst_1', { after: { seq: 0, mark: null }, limit: 10, maxBytes: 1_000 }),
  'the newest cursor': (feed: EventFeed) => feed.findLast('inst_1'),
}

test.for(Object.entries(reads))('%s shows an event only after it is safe from a power failure', async ([, read]) => {
  const { feed, synced } = feedBeforeSync()
  let resolved = false
  const reading = read(feed).then(() => {
    resolved = true
  })
  await new Promise(done => setImmediate(done))
  expect(resolved).toBe(false)
  synced.resolve()
  await reading
})

test.for(Object.entries(reads))('%s is refused if the event cannot reach the disk', async ([, read]) => {
  const { feed, synced } = feedBeforeSync()
  synced.reject(new StoreUnavailable('the disk is full'))
  await expect(read(feed)).rejects.toThrow(StoreUnavailable)
})
