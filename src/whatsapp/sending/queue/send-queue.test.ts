import fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'
import { beginPage, createSendQueue, loaded, PAGE, queuedRows, read, row } from '../../../../test/queued-messages.ts'
import type { QueuedMessage } from '../../../store/messages/messages.ts'
import { type QueuedRows, SendQueue } from './send-queue.ts'

afterEach(() => vi.useRealTimers())

test('every message is sent once and in the order accepted for each recipient, whichever recipient waits', async () => {
  const recipients = fc.constantFrom('a', 'b', 'c', 'stuck')
  const messages = fc.record({ to: recipients, bytes: fc.constantFrom(10, 10, 10, 70_000, 300_000, 2_000_000) })
  await fc.assert(
    fc.asyncProperty(
      fc.array(messages, { maxLength: 300 }),
      fc.infiniteStream(fc.nat(1_000)),
      async (order, choices) => {
        let queue = order.map(({ to, bytes }, index) => row(index + 1, to, bytes))
        const sendQueue = createSendQueue()
        const sent: QueuedMessage[] = []
        sendQueue.requestRead('start')
        for (;;) {
          await read(sendQueue, queue)
          const ready = loaded(sendQueue).filter(({ key }) => key !== 'stuck')
          const recipient = ready[choices.next().value % ready.length]
          const message = recipient?.messages[0]
          if (!message) break
          sent.push(message)
          sendQueue.settle(message)
          queue = queue.filter(({ id }) => id !== message.id)
          sendQueue.remove(message)
        }
        for (const to of ['a', 'b', 'c']) {
          const expected = order.flatMap((one, index) => (one.to === to ? [index + 1] : []))
          expect(sent.filter(message => message.to === to).map(({ seq }) => seq)).toEqual(expected)
        }
      },
    ),
  )
})

test('messages that arrive during reads and sends are sent in order, even if their rows were skipped at first', async () => {
  const steps = fc.array(
    fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom('a', 'b').map(to => ({ to })) },
      { weight: 3, arbitrary: fc.constant('send' as const) },
      { weight: 2, arbitrary: fc.constantFrom('ask' as const, 'answer' as const) },
    ),
    { minLength: 200, maxLength: 700 },
  )
  await fc.assert(
    fc.asyncProperty(steps, fc.nat(1_000), async (order, choice) => {
      const sendQueue = createSendQueue()
      let queue: QueuedMessage[] = []
      let added = 0
      let asked: { page: ReturnType<typeof beginPage>; rows: QueuedMessage[] } | null = null
      const sent: QueuedMessage[] = []
      const answer = async () => {
        await asked?.page.answer(asked.rows)
        asked = null
      }
      const send = () => {
        const ready = loaded(sendQueue)
        const message = ready[choice % ready.length]?.messages[0]
        if (message === undefined) return false
        sent.push(message)
        sendQueue.settle(message)
        queue = queue.filter(({ id }) => id !== message.id)
        sendQueue.remove(message)
        return true
      }
      for (const step of order) {
        if (step === 'send') send()
        else if (step === 'answer') await answer()
        else if (step !== 'ask') {
          added += 1
          queue.push(row(added, step.to))
          sendQueue.requestRead('next', step.to)
        } else if (!asked && sendQueue.wantsMore) {
          const page = beginPage(sendQueue)
          asked = { page, rows: queue.filter(({ seq }) => seq > page.after).slice(0, PAGE) }
        }
      }
      await answer()
      do await read(sendQueue, queue)
      while (send())
      expect(queue).toEqual([])
      for (const to of ['a', 'b']) {
        const numbers = sent.filter(message => message.to === to).map(({ seq }) => seq)
        expect(numbers).toEqual([...numbers].sort((one, other) => one - other))
      }
      expect(sent).toHaveLength(added)
    }),
  )
})

test('a recipient with more queued messages than fit in memory delays no other, and loses none', async () => {
  const queue = [...Array.from({ length: 5_000 }, (_, index) => row(index + 1, 'stuck')), row(5_001, 'free')]
  const sendQueue = createSendQueue()
  sendQueue.requestRead('start')
  await read(sendQueue, queue)
  expect(loaded(sendQueue).find(({ key }) => key === 'free')?.messages).toHaveLength(1)
  let left = queue
  const sent: number[] = []
  for (;;) {
    await read(sendQueue, left)
    const message = loaded(sendQueue).find(({ key }) => key === 'stuck')?.messages[0]
    if (!message) break
    sent.push(message.seq)
    left = left.slice(1)
    sendQueue.remove(message)
  }
  expect(sent).toEqual(queue.slice(0, 5_000).map(({ seq }) => seq))
})

test('a queue of long messages fills the memory with few of them, and all are sent', async () => {
  let queue = Array.from({ length: 1_000 }, (_, index) => row(index + 1, `r${index % 40}`, 130_000))
  const sendQueue = new SendQueue()
  sendQueue.requestRead('start')
  let sent = 0
  let mostBytes = 0
  for (;;) {
    await read(sendQueue, queue)
    const held = loaded(sendQueue).flatMap(({ messages }) => messages)
    mostBytes = Math.max(mostBytes, 130_000 * held.length)
    if (sent === 0) expect(sendQueue.isFull).toBe(true)
    if (held.length === 0) break
    const heads = new Set(loaded(sendQueue).map(({ messages }) => messages[0]!))
    queue = queue.filter(message => !heads.has(message))
    for (const message of heads) sendQueue.remove(message)
    sent += heads.size
  }
  expect(sent).toBe(1_000)
  expect(mostBytes).toBeLessThan(10_000_000)
})

test('a long message is held alone in its chat, and the next one follows it', async () => {
  const queue = [1, 2, 3].map(seq => row(seq, 'a', 20_000_000))
  const sendQueue = new SendQueue()
  sendQueue.requestRead('start')
  for (const message of queue) {
    await read(sendQueue, queue.slice(message.seq - 1))
    expect(loaded(sendQueue).map(({ messages }) => messages)).toEqual([[message]])
    sendQueue.remove(message)
  }
  expect(sendQueue.isFull).toBe(false)
})

test.each([
  { how: 'equally many messages', recipientOf: (index: number) => index % 16 },
  { how: 'one with half of the messages', recipientOf: (index: number) => (index % 2 === 0 ? 0 : (index >> 1) % 16) },
])('with a long queue to few recipients ($how), few rows are read again', async ({ recipientOf }) => {
  const queue = Array.from({ length: 6_000 }, (_, index) => row(index + 1, `r${recipientOf(index)}`))
  const sendQueue = new SendQueue()
  let from = 0
  const sent = new Set<number>()
  const reads = { rows: 0 }
  /** The rows after `seq`, as the database finds them. */
  const find = (seq: number) => {
    const rows: QueuedMessage[] = []
    for (let at = Math.max(seq, from); at < queue.length && rows.length < 256; at += 1) {
      if (!sent.has(at + 1)) rows.push(queue[at]!)
    }
    reads.rows += rows.length
    return rows
  }
  sendQueue.requestRead('start')
  for (let round = 0; sent.size < queue.length; round += 1) {
    while (sendQueue.wantsMore)
      await sendQueue.read({ ...queuedRows([]), list: async after => find(after) }, () => true)
    // A chat sends one message at a time, and a quarter of the chats are still waiting for the answer.
    for (const { key, messages } of loaded(sendQueue)) {
      if ((7 * round + Number(key.slice(1))) % 4 === round % 3) continue
      sent.add(messages[0]!.seq)
      sendQueue.remove(messages[0]!)
    }
    while (sent.has(from + 1)) from += 1
  }
  expect(reads.rows / queue.length).toBeLessThan(6)
})

test('recipients that are the same chat share one order, whichever row shows that they are the same', async () => {
  const recipients = fc.constantFrom('a', 'b', 'c', 'other')
  const found = new Map([
    ['a', 'b@s.whatsapp.net'],
    ['c', 'b@s.whatsapp.net'],
  ])
  const addressed = fc.record({ to: recipients, isFound: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(
      fc.array(addressed, { maxLength: 300 }),
      fc.infiniteStream(fc.nat(1_000)),
      fc.boolean(),
      async (drawn, choices, all) => {
        const sendQueue = createSendQueue()
        const sent: QueuedMessage[] = []
        const order = all ? drawn.map(({ to }) => ({ to, isFound: true })) : drawn
        let queue = order.map(({ to, isFound }, index) => ({
          ...row(index + 1, to),
          foundAddress: (isFound && found.get(to)) || null,
        }))
        const claimed: QueuedMessage[] = []
        sendQueue.requestRead('start')
        for (let idle = 0; idle < 3; ) {
          await read(sendQueue, queue)
          const ready = loaded(sendQueue).filter(({ isBusy }) => !isBusy)
          const chat = ready[choices.next().value % ready.length]
          const next = chat?.messages[0]
          if (chat && next && claimed.length < 3) {
            chat.claim(next)
            claimed.push(next)
          }
          const message = claimed.splice(choices.next().value % claimed.length, 1)[0]
          idle = message ? 0 : idle + 1
          if (!message) continue
          // The address is known after the look-up, just before the message is written.
          if (sendQueue.beginWrite(message, found.get(message.to) ?? message.to)) {
            sent.push(message)
            queue = queue.filter(({ id }) => id !== message.id)
            sendQueue.remove(message)
          }
          sendQueue.unclaim(message)
        }
        expect(sent.map(({ id }) => id).sort()).toEqual(order.map((_, index) => `msg_${index + 1}`).sort())
        // Two rows may be sent in any order if nothing showed that they are the same chat before one was written.
        if (all) {
          const ofChat = sent.filter(({ to }) => to !== 'other').map(({ seq }) => seq)
          expect(ofChat).toEqual([...ofChat].sort((one, two) => one - two))
        }
        for (const to of ['a', 'b', 'c', 'other']) {
          const numbers = sent.filter(message => message.to === to).map(({ seq }) => seq)
          expect(numbers).toEqual([...numbers].sort((one, two) => one - two))
        }
        expect(loaded(sendQueue)).toEqual([])
      },
    ),
  )
})

test('a message that was removed during a read is not added again', async () => {
  const sendQueue = createSendQueue()
  const message = row(1, 'a')
  sendQueue.requestRead('start')
  await read(sendQueue, [message])
  sendQueue.requestRead('start')
  const page = beginPage(sendQueue)
  sendQueue.remove(message)
  await page.answer([message])
  expect(loaded(sendQueue)).toEqual([])
})

test('rows that arrive during a read are found by another read', async () => {
  const sendQueue = createSendQueue()
  sendQueue.requestRead('start')
  const page = beginPage(sendQueue)
  sendQueue.requestRead('next')
  await page.answer([row(1, 'a')])
  expect(sendQueue.wantsMore).toBe(true)
  await read(sendQueue, [row(1, 'a'), row(2, 'b')])
  expect(loaded(sendQueue).map(({ key }) => key)).toEqual(['a', 'b'])
})

test('a row committed late, to a recipient with many queued messages, is read before the later ones', async () => {
  const sendQueue = createSendQueue()
  sendQueue.requestRead('start')
  let queue = Array.from({ length: 100 }, (_, index) => row(index + 100, 'one'))
  await read(sendQueue, queue)
  sendQueue.requestRead('next', 'one')
  expect(sendQueue.wantsMore).toBe(false)
  queue = [row(50, 'one'), ...queue]
  const [recipient] = sendQueue.chats()
  for (const message of [...recipient!.messages]) {
    sendQueue.settle(message)
    queue = queue.filter(({ id }) => id !== message.id)
    sendQueue.remove(message)
  }
  await read(sendQueue, queue)
  expect(
    loaded(sendQueue)[0]
      ?.messages.map(({ seq }) => seq)
      .slice(0, 2),
  ).toEqual([50, 164])
})

test('a row that another node committed late, with a lower number, is found by an overlapping read', async () => {
  const sendQueue = createSendQueue()
  sendQueue.requestRead('start')
  await read(sendQueue, [row(5_000, 'a'), row(5_003, 'b')])
  sendQueue.requestRead('next')
  const page = beginPage(sendQueue)
  sendQueue.requestRead('next')
  sendQueue.requestRead('next')
  const queue = [row(5_000, 'a'), row(5_001, 'c'), row(5_003, 'b')]
  await page.answer([], queue)
  await read(sendQueue, queue)
  expect(loaded(sendQueue).map(({ key }) => key)).toEqual(['a', 'b', 'c'])
})

test('on a single node no row is committed late, so no numbers are compared', async () => {
  const sendQueue = new SendQueue({ rowsComeLate: false })
  const listNumbers = () => expect.fail('numbers were compared')
  sendQueue.requestRead('start')
  await sendQueue.read({ list: async () => [row(5_000, 'a'), row(5_003, 'b')], listNumbers }, () => true)
  sendQueue.requestRead('next')
  await sendQueue.read({ list: async after => (after < 5_004 ? [row(5_004, 'c')] : []), listNumbers }, () => true)
  expect(loaded(sendQueue).map(({ key }) => key)).toEqual(['a', 'b', 'c'])
})

test('a row that is committed after an overlapping read began is found before the next one of its chat', async () => {
  const sendQueue = createSendQueue()
  sendQueue.requestRead('start')
  await read(sendQueue, [row(5_000, 'a'), row(5_003, 'b')])
  sendQueue.requestRead('next')
  const before: QueuedMessage[] = [row(5_000, 'a'), row(5_003, 'b'), row(5_004, 'c')]
  const queue = [row(5_000, 'a'), row(5_001, 'c'), row(5_003, 'b'), row(5_004, 'c')]
  const pages: number[] = []
  const list = async (after: number, limit: number) => {
    pages.push(after)
    return queuedRows(pages.length === 1 ? before : queue).list(after, limit)
  }
  await sendQueue.read({ ...queuedRows(queue), list }, () => {
    const [first] = sendQueue.chatOf({ to: 'c' })?.messages ?? []
    expect(first?.seq).toBe(5_001)
    return true
  })
  expect(pages).toEqual([5_003, 5_000])
})

test('an overlapping read compares the numbers of the rows and reads no row again, however many are queued', async () => {
  const sendQueue = new SendQueue()
  const pages: number[] = []
  const queue: QueuedMessage[] = []
  const add = (count: number) => {
    for (let index = 0; index < count; index += 1) queue.push(row(queue.length + 1, `r${queue.length % 16}`))
  }
  const readAll = async () => {
    const { list, listNumbers } = queuedRows(queue)
    const listPage = async (after: number, limit: number) => {
      pages.push(after)
      return list(after, limit)
    }
    await sendQueue.read({ list: listPage, listNumbers }, () => true)
  }
  add(1_000)
  sendQueue.requestRead('start')
  await readAll()
  pages.length = 0
  for (let round = 0; round < 10; round += 1) {
    add(1)
    sendQueue.requestRead('next')
    await readAll()
  }
  expect(pages).toEqual(Array.from({ length: 10 }, (_, index) => 1_000 + index))
  add(4_000)
  sendQueue.requestRead('next')
  await readAll()
  pages.length = 0
  add(1)
  sendQueue.requestRead('next')
  await readAll()
  expect(pages).toEqual([5_010])
  // Committed late, the last of all.
  queue.splice(4_500, 1, row(4_500.5, 'late'), queue[4_500]!)
  sendQueue.requestRead('next')
  await readAll()
  expect(sendQueue.chatOf({ to: 'late' })?.messages.map(({ seq }) => seq)).toEqual([4_500.5])
})

test('a row whose commit took long is found before the next one of its chat, however many numbers were assigned meanwhile', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const sendQueue = new SendQueue()
  const old = row(20, 'old')
  sendQueue.requestRead('start')
  await read(sendQueue, [old])
  vi.advanceTimersByTime(300_000)
  const others = Array.from({ length: 1_201 }, (_, index) => row(index + 100, `r${index}`))
  sendQueue.requestRead('next')
  await read(sendQueue, [old, ...others])
  // Row 50 got its number before the others, but its commit waited for locks.
  vi.advanceTimersByTime(59_000)
  sendQueue.requestRead('next', 'a')
  sendQueue.requestRead('next', 'a')
  // Nothing can be read for a while.
  vi.advanceTimersByTime(120_000)
  await read(sendQueue, [old, row(50, 'a'), ...others, row(1_301, 'a')])
  expect(sendQueue.chatOf({ to: 'a' })?.messages.map(({ seq }) => seq)).toEqual([50, 1_301])
})

test('the numbers of rows that were read more than a minute ago are not compared', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const sendQueue = createSendQueue()
  sendQueue.requestRead('start')
  await read(sendQueue, [row(5_000, 'a')])
  vi.advanceTimersByTime(30_000)
  sendQueue.requestRead('next')
  await read(sendQueue, [row(5_000, 'a'), row(5_001, 'b')])
  vi.advanceTimersByTime(31_000)
  sendQueue.requestRead('next')
  const compared: number[][] = []
  const listNumbers = async (...[after, to]: number[]) => {
    compared.push([after!, to!])
    return [5_001]
  }
  await sendQueue.read({ list: async () => [], listNumbers }, () => true)
  expect(compared).toEqual([[5_000, 5_001]])
})

test('messages that did not fit are read before newer ones when the recipient runs empty during a read', async () => {
  const sendQueue = createSendQueue()
  const queue = Array.from({ length: 70 }, (_, index) => row(index + 1, 'a'))
  sendQueue.requestRead('start')
  await read(sendQueue, queue)
  sendQueue.requestRead('next')
  const page = beginPage(sendQueue)
  for (const message of queue.slice(0, 64)) sendQueue.remove(message)
  await page.answer([row(71, 'a')])
  await read(sendQueue, [...queue.slice(64), row(71, 'a')])
  const [recipient] = sendQueue.chats()
  expect(recipient?.messages.map(({ seq }) => seq)).toEqual([65, 66, 67, 68, 69, 70, 71])
})

test('hints that keep arriving do not keep a read from making progress', async () => {
  const sendQueue = createSendQueue()
  const queue = Array.from({ length: 4 * PAGE }, (_, index) => row(index + 1, `r${index}`))
  const reads: number[] = []
  let comparisons = 0
  const queued: QueuedRows = {
    list: async after => {
      reads.push(after)
      sendQueue.requestRead('next')
      return queue.slice(after, after + PAGE)
    },
    listNumbers: (...range) => {
      comparisons += 1
      return queuedRows(queue).listNumbers(...range)
    },
  }
  for (let count = 0; count < 100; count += 1) sendQueue.requestRead('next')
  await sendQueue.read(queued, () => reads.length < 4)
  expect(reads).toEqual([0, PAGE, 2 * PAGE, 3 * PAGE])
  // For each page but the first one, before which nothing had been read.
  expect(comparisons).toBe(3)
})

test('a message that was committed before another of its chat was accepted is sent first, whichever commits of other nodes take long', async () => {
  const steps = fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom('a', 'b', 'c').map(to => ({ to })) },
      { weight: 4, arbitrary: fc.constant('commit' as const) },
      { weight: 2, arbitrary: fc.constant('read' as const) },
      { weight: 3, arbitrary: fc.constant('send' as const) },
    ),
    { minLength: 50, maxLength: 400 },
  )
  await fc.assert(
    fc.asyncProperty(steps, fc.infiniteStream(fc.nat(1_000)), async (order, choices) => {
      const sendQueue = createSendQueue()
      const choose = (below: number) => choices.next().value % below
      const open: QueuedMessage[] = []
      let queue: QueuedMessage[] = []
      const committedBefore = new Map<QueuedMessage, QueuedMessage[]>()
      const committed: QueuedMessage[] = []
      const sent: QueuedMessage[] = []
      let seq = 0
      const accept = (to: string) => {
        seq += 1
        const message = row(seq, to)
        committedBefore.set(
          message,
          committed.filter(one => one.to === to),
        )
        open.push(message)
      }
      const commit = () => {
        const [message] = open.length > 0 ? open.splice(choose(open.length), 1) : []
        if (!message) return
        committed.push(message)
        queue = [...queue, message].sort((one, two) => one.seq - two.seq)
        sendQueue.requestRead('next', message.to)
      }
      const send = () => {
        const chats = loaded(sendQueue)
        const message = chats[choose(Math.max(1, chats.length))]?.messages[0]
        if (!message) return
        sent.push(message)
        queue = queue.filter(({ id }) => id !== message.id)
        sendQueue.remove(message)
      }
      let isOver = false
      // Other nodes accept and commit between any two queries.
      const meanwhile = () => {
        if (isOver) return
        if (choose(3) === 0) commit()
        if (choose(3) === 0) accept('abc'[choose(3)]!)
        if (choose(3) === 0) commit()
      }
      const queued: QueuedRows = {
        list: async (...range) => {
          const rows = await queuedRows(queue).list(...range)
          meanwhile()
          return rows
        },
        listNumbers: async (...range) => {
          const numbers = await queuedRows(queue).listNumbers(...range)
          meanwhile()
          return numbers
        },
      }
      const onPage = () => {
        send()
        return true
      }
      sendQueue.requestRead('start')
      for (const step of order) {
        if (step === 'commit') commit()
        else if (step === 'read') await sendQueue.read(queued, onPage)
        else if (step === 'send') send()
        else accept(step.to)
      }
      isOver = true
      while (open.length > 0) commit()
      for (let pass = 0; queue.length > 0; pass += 1) {
        expect(pass).toBeLessThan(10_000)
        await read(sendQueue, queue)
        send()
      }
      expect(new Set(sent)).toEqual(new Set(committed))
      for (const [index, message] of sent.entries()) {
        const later = new Set(sent.slice(index + 1))
        expect(committedBefore.get(message)!.filter(one => later.has(one))).toEqual([])
      }
    }),
    { numRuns: 1_000 },
  )
})
