import { expect, test } from 'vitest'
import { PAGE, read, row } from '../../../../test/queued-messages.ts'
import { SendQueue } from './send-queue.ts'

test('deferred recipients take no memory from others, and are sent in order once released', () => {
  const strangers = Array.from({ length: 5_000 }, (_, index) => row(index + 1, `stranger ${index % 2_500}`))
  const queue = [...strangers, row(5_001, 'known')]
  const sendQueue = new SendQueue()
  sendQueue.requestRead('start')
  for (;;) {
    read(sendQueue, queue)
    const stranger = [...sendQueue.chats()].find(({ key }) => key !== 'known')
    if (!stranger) break
    sendQueue.defer(stranger.key, { numbers: [stranger.key, `number of ${stranger.key}`] })
  }
  expect([...sendQueue.chats()].map(({ key }) => key)).toEqual(['known'])
  sendQueue.release('number of stranger 7')
  read(sendQueue, queue)
  const released = [...sendQueue.chats()].find(({ key }) => key === 'stranger 7')
  expect(released?.messages.map(({ seq }) => seq)).toEqual([8, 2_508])
  expect(sendQueue.size).toBe(3)
  sendQueue.release()
  read(sendQueue, queue)
  expect(sendQueue.deferredChats).toBe(0)
  expect(sendQueue.size).toBeGreaterThan(2_000)
})

test('beyond the limit of deferred chats, later chats wait too, and no message is lost or out of order', () => {
  const strangers = Array.from({ length: 20_100 }, (_, index) => `stranger ${index}`)
  const order = [...strangers, 'known', ...strangers.slice(-50), 'known']
  const queue = order.map((to, index) => row(index + 1, to))
  const sendQueue = new SendQueue()
  const readFast = () => {
    while (sendQueue.wantsMore) {
      sendQueue.rewind()
      for (let isLast = false; !isLast && sendQueue.wantsMore; ) {
        const rows = queue.slice(sendQueue.scannedTo, sendQueue.scannedTo + PAGE)
        isLast = rows.length < PAGE
        sendQueue.beginRead()
        sendQueue.endRead(rows, isLast, 0)
      }
    }
  }
  const deferStrangers = () => {
    const found = [...sendQueue.chats()].filter(({ key }) => key !== 'known')
    for (const { key } of found) sendQueue.defer(key)
    return found.length > 0
  }
  sendQueue.requestRead('start')
  do readFast()
  while (deferStrangers())
  expect(sendQueue.deferredChats).toBe(20_000)
  expect([...sendQueue.chats()].map(({ key, messages }) => [key, messages.map(({ seq }) => seq)])).toEqual([
    ['known', [20_101, 20_152]],
  ])
  sendQueue.release()
  const read = new Map<string, number[]>()
  for (readFast(); sendQueue.size > 0; readFast()) {
    for (const { key, messages } of [...sendQueue.chats()]) {
      read.set(key, [...(read.get(key) ?? []), ...messages.map(({ seq }) => seq)])
      for (const message of [...messages]) sendQueue.remove(message)
    }
  }
  for (const [index, stranger] of strangers.entries()) {
    const again = index < strangers.length - 50 ? [] : [index + 52]
    expect(read.get(stranger)).toEqual([index + 1, ...again])
  }
})

test('a recipient deferred until a moment is read again after it and keeps its failure count', () => {
  const queue = [row(1, 'slow'), row(2, 'slow')]
  const sendQueue = new SendQueue()
  sendQueue.requestRead('start')
  read(sendQueue, queue)
  const [recipient] = sendQueue.chats()
  recipient!.failures = 3
  sendQueue.defer('slow', { until: 50 })
  sendQueue.requestRead('start')
  read(sendQueue, queue, 49)
  expect([...sendQueue.chats()]).toEqual([])
  sendQueue.requestRead('start')
  read(sendQueue, queue, 50)
  expect([...sendQueue.chats()]).toMatchObject([{ key: 'slow', failures: 3, messages: [{ seq: 1 }, { seq: 2 }] }])
})

test('skipped rows are counted, whether they were read or not, until all rows are read again', () => {
  const sendQueue = new SendQueue()
  sendQueue.requestRead('start')
  const queue = [...Array.from({ length: 100 }, (_, index) => row(index + 1, 'stuck')), row(101, 'free')]
  read(sendQueue, queue)
  expect(sendQueue.skippedRows).toBe(36)
  expect(['stuck', 'free', 'nobody'].map(to => sendQueue.skipNewRow(to, 'next'))).toEqual([true, false, false])
  expect(sendQueue.skippedRows).toBe(37)
  sendQueue.requestRead('start')
  read(sendQueue, queue.slice(0, 70))
  expect(sendQueue.skippedRows).toBe(6)
})
