import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { queuedRows, row } from '../../../test/queued-messages.ts'
import type { QueuedMessage } from '../../store/messages/messages.ts'
import { Claims } from './claim.ts'
import { SendQueue } from './queue/send-queue.ts'

/** The longest interval between two reads. */
const INTERVAL_MS = 160

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

/** Resolves when every requested read has been made. */
const allRead = () => vi.advanceTimersByTimeAsync(2 * INTERVAL_MS)

function setUp(onRead: () => void = () => undefined) {
  const queue: QueuedMessage[] = []
  const reads: number[] = []
  const readTimes: number[] = []
  const sendQueue = new SendQueue()
  const reader = new Claims({
    lease: { instanceId: 'inst_0', owner: 'node', epoch: 1 },
    signal: new AbortController().signal,
    sendQueue,
    messages: {
      async listQueued(_, limit, afterSeq = 0) {
        reads.push(afterSeq)
        readTimes.push(performance.now())
        return queue.filter(({ seq }) => seq > afterSeq).slice(0, limit)
      },
      listQueuedNumbers: (_, ...range) => queuedRows(queue).listNumbers(...range),
    },
    canSend: () => true,
    onPage: () => {
      onRead()
      return true
    },
    onFailed: error => {
      throw error
    },
  })
  const add = (to: string) => void queue.push(row(queue.length + 1, to))
  return { sendQueue, reader, reads, readTimes, add }
}

test('a message that follows unread ones to its recipient causes no read; a message to another recipient does', async () => {
  const { sendQueue, reader, reads, add } = setUp()
  for (let index = 0; index < 100; index += 1) add('stuck')
  reader.requestRead('start')
  await allRead()
  expect([...sendQueue.chats()].map(({ unreadFrom }) => unreadFrom)).toEqual([65])
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
  for (let index = 0; index < 100_000; index += 1) sendQueue.requestRead('next', 'one')
  for (let polls = 1; polls < 24; polls += 1) reader.poll()
  await allRead()
  expect(reads).toEqual([0])
  reader.poll()
  await allRead()
  expect(reads).toEqual([0, 0])
  await reader.stop()
})

test('reads that lead to no claim become rarer; a claim, or a chat that ran empty, ends that', async () => {
  const work = { claims: false }
  const { sendQueue, reader, readTimes, add } = setUp(() => {
    const [chat] = sendQueue.chats()
    if (work.claims) reader.claim(chat!.messages[0]!)
  })
  /** @returns the times between the reads, in milliseconds, while hints arrive all the time */
  const pausesDuring = async (durationMs: number) => {
    readTimes.length = 0
    for (let at = 0; at < durationMs; at += 1) {
      reader.requestRead('next')
      await vi.advanceTimersByTimeAsync(1)
    }
    return readTimes.slice(1).map((at, index) => at - readTimes[index]!)
  }

  add('one')
  add('two')
  expect(await pausesDuring(1_000)).toEqual([40, 80, 160, 160, 160, 160, 160])
  work.claims = true
  expect((await pausesDuring(500)).slice(-5)).toEqual([20, 20, 20, 20, 20])
  work.claims = false
  expect((await pausesDuring(1_000)).slice(-3)).toEqual([160, 160, 160])
  const [, chat] = sendQueue.chats()
  const message = chat!.messages[0]!
  sendQueue.remove(message)
  // It reads immediately, then after 40 ms, then after 80 ms.
  reader.release(message)
  expect(await pausesDuring(130)).toEqual([80])
  await reader.stop()
})
