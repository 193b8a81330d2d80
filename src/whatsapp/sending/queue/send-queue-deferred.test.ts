import { expect, onTestFinished, test, vi } from 'vitest'
import { loaded, queuedRows, read, row } from '../../../../test/queued-messages.ts'
import { SendQueue } from './send-queue.ts'

test('deferred recipients take no memory from others, and are sent in order after their release', async () => {
  const strangers = Array.from({ length: 5_000 }, (_, index) => row(index + 1, `stranger ${index % 2_500}`))
  const queue = [...strangers, row(5_001, 'known')]
  const sendQueue = new SendQueue()
  sendQueue.requestRead('start')
  for (;;) {
    await read(sendQueue, queue)
    const stranger = loaded(sendQueue).find(({ key }) => key !== 'known')
    if (!stranger) break
    sendQueue.defer(stranger, Number.POSITIVE_INFINITY, [stranger.key, `number of ${stranger.key}`])
  }
  expect(loaded(sendQueue).map(({ key }) => key)).toEqual(['known'])
  sendQueue.wakeDeferred('number of stranger 7')
  await read(sendQueue, queue)
  const woken = loaded(sendQueue).find(({ key }) => key === 'stranger 7')
  expect(woken?.messages.map(({ seq }) => seq)).toEqual([8, 2_508])
  expect(sendQueue.size).toBe(3)
  sendQueue.wakeDeferred()
  await read(sendQueue, queue)
  expect(sendQueue.size).toBeGreaterThan(2_000)
})

test('beyond the limit of deferred chats, later chats wait too, and no message is lost or out of order', async () => {
  const strangers = Array.from({ length: 20_500 }, (_, index) => `stranger ${index}`)
  const order = ['known', ...strangers, 'later', ...strangers.slice(-50), 'known']
  const queue = order.map((to, index) => row(index + 1, to))
  const sendQueue = new SendQueue()
  const readFast = async () => {
    const list = async (after: number, limit: number) => queue.slice(after, after + limit)
    while (sendQueue.wantsMore) await sendQueue.read({ ...queuedRows(queue), list }, () => true)
  }
  const deferStrangers = () => {
    const found = loaded(sendQueue).filter(({ key }) => key !== 'known')
    for (const chat of found) sendQueue.defer(chat)
    return found.length > 0
  }
  sendQueue.requestRead('start')
  do await readFast()
  while (deferStrangers())
  expect([...sendQueue.chats()].length).toBeLessThan(20_256)
  expect(loaded(sendQueue).map(({ key, messages }) => [key, messages.map(({ seq }) => seq)])).toEqual([['known', [1]]])
  sendQueue.wakeDeferred()
  const read = new Map<string, number[]>()
  for (await readFast(); sendQueue.size > 0; await readFast()) {
    for (const { key, messages } of loaded(sendQueue)) {
      read.set(key, [...(read.get(key) ?? []), ...messages.map(({ seq }) => seq)])
      for (const message of [...messages]) sendQueue.remove(message)
    }
  }
  expect(read.get('known')).toEqual([1, 20_553])
  expect(read.get('later')).toEqual([20_502])
  for (const [index, stranger] of strangers.entries()) {
    const again = index < strangers.length - 50 ? [] : [index + 53]
    expect(read.get(stranger)).toEqual([index + 2, ...again])
  }
})

test('once its deferral has ended, a recipient’s rows are read again and its failure count is kept', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const queue = [row(1, 'slow'), row(2, 'slow')]
  const sendQueue = new SendQueue()
  sendQueue.requestRead('start')
  await read(sendQueue, queue)
  const [recipient] = sendQueue.chats()
  recipient!.failures = 3
  sendQueue.defer(recipient!, performance.now() + 50)
  queue.push(row(3, 'slow'))
  vi.advanceTimersByTime(49)
  sendQueue.requestRead('start')
  await read(sendQueue, queue)
  expect(loaded(sendQueue)).toEqual([])
  vi.advanceTimersByTime(1)
  queue.push(row(4, 'slow'))
  sendQueue.requestRead('next', 'slow')
  await read(sendQueue, queue)
  expect(loaded(sendQueue)).toEqual([])
  sendQueue.requestRead('start')
  await read(sendQueue, queue)
  const messages = [1, 2, 3, 4].map(seq => ({ seq }))
  expect(loaded(sendQueue)).toMatchObject([{ key: 'slow', failures: 3, messages }])
})

test('skipped rows are counted, whether they were read or not, until all rows are read again', async () => {
  const sendQueue = new SendQueue()
  sendQueue.requestRead('start')
  const queue = [...Array.from({ length: 100 }, (_, index) => row(index + 1, 'stuck')), row(101, 'free')]
  await read(sendQueue, queue)
  expect(sendQueue.skippedRows).toBe(36)
  sendQueue.requestRead('next', 'stuck')
  expect(sendQueue.wantsMore).toBe(false)
  for (const to of ['free', 'nobody']) sendQueue.requestRead('next', to)
  expect(sendQueue.wantsMore).toBe(true)
  expect(sendQueue.skippedRows).toBe(37)
  sendQueue.requestRead('start')
  await read(sendQueue, queue.slice(0, 70))
  expect(sendQueue.skippedRows).toBe(6)
})
