import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { row } from '../../../test/queued-messages.ts'
import type { QueuedMessage } from '../../store/messages/messages.ts'
import { Claims } from './claim.ts'
import { SendQueue } from './send-queue.ts'

/** The longest interval between two reads. */
const INTERVAL_MS = 160

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

/** Every read that was requested has been made. */
const allRead = () => vi.advanceTimersByTimeAsync(2 * INTERVAL_MS)

function setUp() {
  const queue: QueuedMessage[] = []
  const reads: number[] = []
  const sendQueue = new SendQueue()
  const reader = new Claims({
    sendQueue,
    async readPage(limit, afterSeq) {
      reads.push(afterSeq)
      return queue.filter(({ seq }) => seq > afterSeq).slice(0, limit)
    },
    canSend: () => true,
    onRead: () => undefined,
    onFailed: error => {
      throw error
    },
  })
  const add = (to: string) => void queue.push(row(queue.length + 1, to))
  return { sendQueue, reader, reads, add }
}

test('a message behind unread ones of its recipient causes no read; a message to another recipient does', async () => {
  const { sendQueue, reader, reads, add } = setUp()
  for (let index = 0; index < 100; index += 1) add('stuck')
  reader.requestRead('start')
  await allRead()
  expect([...sendQueue.chats()].map(({ overflowFrom }) => overflowFrom)).toEqual([65])
  const before = reads.length
  add('stuck')
  reader.requestRead('next', 'stuck')
  await allRead()
  expect(reads).toHaveLength(before)
  add('free')
  reader.requestRead('next', 'free')
  await allRead()
  expect([...sendQueue.chats()].map(({ key }) => key)).toEqual(['stuck', 'free'])
  await reader.stop()
})

test('a poll reads from the start, less often the more rows were skipped', async () => {
  const { reader, reads, add } = setUp()
  for (let index = 0; index < 10; index += 1) add('one')
  reader.requestRead('start')
  await allRead()
  reader.poll()
  await allRead()
  expect(reads).toEqual([0, 0])
  for (let index = 0; index < 90; index += 1) add('one')
  reader.requestRead('start')
  await allRead()
  expect(reads).toEqual([0, 0, 0])
  for (let index = 0; index < 1_500; index += 1) {
    add('one')
    reader.requestRead('next', 'one')
  }
  const before = reads.length
  reader.poll()
  reader.poll()
  await allRead()
  expect(reads).toHaveLength(before)
  reader.poll()
  await allRead()
  expect(reads.at(-1)).toBeGreaterThan(1_500)
  reader.poll()
  reader.poll()
  await allRead()
  expect(reads.filter(seq => seq === 0)).toHaveLength(4)
  reader.poll()
  await allRead()
  expect(reads.filter(seq => seq === 0)).toHaveLength(5)
  await reader.stop()
})

test('one poll in two minutes reads from the start, however many rows were skipped', async () => {
  const { sendQueue, reader, reads, add } = setUp()
  for (let index = 0; index < 65; index += 1) add('one')
  reader.requestRead('start')
  await allRead()
  for (let index = 0; index < 100_000; index += 1) sendQueue.skipNewRow('one', 'next')
  for (let polls = 1; polls < 24; polls += 1) reader.poll()
  await allRead()
  expect(reads).toEqual([0])
  reader.poll()
  await allRead()
  expect(reads).toEqual([0, 0])
  await reader.stop()
})
