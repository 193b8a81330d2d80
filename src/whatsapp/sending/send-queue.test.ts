import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { QueuedMessage } from '../../store/messages/messages.ts'
import { Outbox } from './send-queue.ts'

const PAGE = 16

const row = (seq: number, to: string): QueuedMessage => ({
  seq,
  id: `msg_${seq}`,
  instanceId: 'inst_test',
  to,
  text: '',
  whatsappId: `3EB0${seq}`,
  createdAt: 0,
  foundAddress: null,
  prepared: null,
})

/** Reads pages as the sender does, until there is nothing more to take in. */
function read(outbox: Outbox, queue: readonly QueuedMessage[], now = 0): void {
  while (outbox.wantsMore) {
    outbox.rewind()
    let rows: QueuedMessage[]
    do {
      rows = queue.filter(({ seq }) => seq > outbox.scannedTo).slice(0, PAGE)
      outbox.beginRead()
      outbox.endRead(rows, rows.length < PAGE, now)
    } while (rows.length === PAGE && outbox.wantsMore)
  }
}

test('every message goes out once, in the order accepted for each recipient, whoever has to wait meanwhile', () => {
  const recipients = fc.constantFrom('a', 'b', 'c', 'stuck')
  fc.assert(
    fc.property(fc.array(recipients, { maxLength: 300 }), fc.infiniteStream(fc.nat(1_000)), (order, choices) => {
      let queue = order.map((to, index) => row(index + 1, to))
      const outbox = new Outbox()
      const sent: QueuedMessage[] = []
      outbox.lookAgain('start')
      for (;;) {
        read(outbox, queue)
        const ready = [...outbox.chats()].filter(({ key }) => key !== 'stuck')
        const recipient = ready[choices.next().value % ready.length]
        const message = recipient?.messages[0]
        if (!message) break
        sent.push(message)
        outbox.pass(message)
        queue = queue.filter(({ id }) => id !== message.id)
        outbox.end(message)
      }
      for (const to of ['a', 'b', 'c']) {
        const expected = order.flatMap((one, index) => (one === to ? [index + 1] : []))
        expect(sent.filter(message => message.to === to).map(({ seq }) => seq)).toEqual(expected)
      }
    }),
  )
})

test('what comes in while others are read and sent goes out too, in order, though it is not read while it has to wait', () => {
  const steps = fc.array(
    fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom('a', 'b').map(to => ({ to })) },
      { weight: 3, arbitrary: fc.constant('send' as const) },
      { weight: 2, arbitrary: fc.constantFrom('ask' as const, 'answer' as const) },
    ),
    { minLength: 200, maxLength: 700 },
  )
  fc.assert(
    fc.property(steps, fc.nat(1_000), (order, choice) => {
      const outbox = new Outbox()
      let queue: QueuedMessage[] = []
      let added = 0
      let asked: QueuedMessage[] | null = null
      const sent: QueuedMessage[] = []
      const answer = () => {
        if (asked) outbox.endRead(asked, asked.length < PAGE, 0)
        asked = null
      }
      const send = () => {
        const ready = [...outbox.chats()]
        const message = ready[choice % ready.length]?.messages[0]
        if (message === undefined) return false
        sent.push(message)
        outbox.pass(message)
        queue = queue.filter(({ id }) => id !== message.id)
        outbox.end(message)
        return true
      }
      for (const step of order) {
        if (step === 'send') send()
        else if (step === 'answer') answer()
        else if (step !== 'ask') {
          added += 1
          queue.push(row(added, step.to))
          if (!outbox.passOver(step.to, 'on')) outbox.lookAgain('on')
        } else if (!asked && outbox.wantsMore) {
          outbox.rewind()
          outbox.beginRead()
          asked = queue.filter(({ seq }) => seq > outbox.scannedTo).slice(0, PAGE)
        }
      }
      answer()
      do read(outbox, queue)
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

test('a recipient with more waiting than fits holds up nobody, and loses none', () => {
  const queue = [...Array.from({ length: 5_000 }, (_, index) => row(index + 1, 'stuck')), row(5_001, 'free')]
  const outbox = new Outbox()
  outbox.lookAgain('start')
  read(outbox, queue)
  expect([...outbox.chats()].find(({ key }) => key === 'free')?.messages).toHaveLength(1)
  let left = queue
  const sent: number[] = []
  for (;;) {
    read(outbox, left)
    const message = [...outbox.chats()].find(({ key }) => key === 'stuck')?.messages[0]
    if (!message) break
    sent.push(message.seq)
    left = left.slice(1)
    outbox.end(message)
  }
  expect(sent).toEqual(queue.slice(0, 5_000).map(({ seq }) => seq))
})

test('recipients that lead to one chat share its order, whichever of their rows say so', () => {
  const recipients = fc.constantFrom('a', 'b', 'c', 'other')
  const found = new Map([
    ['a', 'b@s.whatsapp.net'],
    ['c', 'b@s.whatsapp.net'],
  ])
  const addressed = fc.record({ to: recipients, isFound: fc.boolean() })
  fc.assert(
    fc.property(
      fc.array(addressed, { maxLength: 300 }),
      fc.infiniteStream(fc.nat(1_000)),
      fc.boolean(),
      (drawn, choices, all) => {
        const outbox = new Outbox()
        const sent: QueuedMessage[] = []
        const order = all ? drawn.map(({ to }) => ({ to, isFound: true })) : drawn
        let queue = order.map(({ to, isFound }, index) => ({
          ...row(index + 1, to),
          foundAddress: (isFound && found.get(to)) || null,
        }))
        const inHand: QueuedMessage[] = []
        outbox.lookAgain('start')
        for (let idle = 0; idle < 3; ) {
          read(outbox, queue)
          const ready = [...outbox.chats()].filter(({ isBusy }) => !isBusy)
          const chat = ready[choices.next().value % ready.length]
          const next = chat?.messages[0]
          if (chat && next && inHand.length < 3) {
            chat.begin(next)
            inHand.push(next)
          }
          const message = inHand.splice(choices.next().value % inHand.length, 1)[0]
          idle = message ? 0 : idle + 1
          if (!message) continue
          // Where it leads is known once it was looked up, as just before it is written.
          if (outbox.claim(message, found.get(message.to) ?? message.to)) {
            sent.push(message)
            queue = queue.filter(({ id }) => id !== message.id)
            outbox.end(message)
          }
          outbox.finish(message)
        }
        expect(sent.map(({ id }) => id).sort()).toEqual(order.map((_, index) => `msg_${index + 1}`).sort())
        // Two rows that nothing joined before one of them was written are in no order.
        if (all) {
          const ofChat = sent.filter(({ to }) => to !== 'other').map(({ seq }) => seq)
          expect(ofChat).toEqual([...ofChat].sort((one, two) => one - two))
        }
        for (const to of ['a', 'b', 'c', 'other']) {
          const numbers = sent.filter(message => message.to === to).map(({ seq }) => seq)
          expect(numbers).toEqual([...numbers].sort((one, two) => one - two))
        }
        expect([...outbox.chats()]).toEqual([])
      },
    ),
  )
})

test('a message that ended while rows were read is not taken up again', () => {
  const outbox = new Outbox()
  const message = row(1, 'a')
  outbox.lookAgain('start')
  read(outbox, [message])
  outbox.lookAgain('start')
  outbox.beginRead()
  outbox.end(message)
  outbox.endRead([message], true, 0)
  expect([...outbox.chats()]).toEqual([])
})

test('rows that arrive while others are read are looked for once more', () => {
  const outbox = new Outbox()
  outbox.lookAgain('start')
  outbox.beginRead()
  outbox.lookAgain('on')
  outbox.endRead([row(1, 'a')], true, 0)
  expect(outbox.wantsMore).toBe(true)
  read(outbox, [row(1, 'a'), row(2, 'b')])
  expect([...outbox.chats()].map(({ key }) => key)).toEqual(['a', 'b'])
})

test('of many to one recipient, the row committed late is found when there is room for those after it', () => {
  const outbox = new Outbox()
  outbox.lookAgain('start')
  let queue = Array.from({ length: 100 }, (_, index) => row(index + 100, 'one'))
  read(outbox, queue)
  expect(outbox.passOver('one', 'back')).toBe(true)
  expect(outbox.wantsMore).toBe(false)
  queue = [row(50, 'one'), ...queue]
  const [recipient] = outbox.chats()
  for (const message of [...recipient!.messages]) {
    outbox.pass(message)
    queue = queue.filter(({ id }) => id !== message.id)
    outbox.end(message)
  }
  read(outbox, queue)
  expect([...outbox.chats()][0]?.messages.map(({ seq }) => seq).slice(0, 2)).toEqual([50, 164])
})

test('a row that another node committed late, under a lower number, is found by looking back', () => {
  const outbox = new Outbox()
  outbox.lookAgain('start')
  read(outbox, [row(5_000, 'a'), row(5_003, 'b')])
  outbox.lookAgain('on')
  read(outbox, [row(5_000, 'a'), row(5_001, 'c'), row(5_003, 'b')])
  expect([...outbox.chats()].map(({ key }) => key)).toEqual(['a', 'b'])
  outbox.beginRead()
  outbox.lookAgain('back')
  outbox.lookAgain('on')
  outbox.endRead([], true, 0)
  read(outbox, [row(5_000, 'a'), row(5_001, 'c'), row(5_003, 'b')])
  expect([...outbox.chats()].map(({ key }) => key)).toEqual(['a', 'b', 'c'])
})

test('what did not fit comes before what is being read when a recipient’s messages run out', () => {
  const outbox = new Outbox()
  const queue = Array.from({ length: 70 }, (_, index) => row(index + 1, 'a'))
  outbox.lookAgain('start')
  read(outbox, queue)
  outbox.lookAgain('on')
  outbox.rewind()
  outbox.beginRead()
  for (const message of queue.slice(0, 64)) outbox.end(message)
  outbox.endRead([row(71, 'a')], true, 0)
  read(outbox, [...queue.slice(64), row(71, 'a')])
  const [recipient] = outbox.chats()
  expect(recipient?.messages.map(({ seq }) => seq)).toEqual([65, 66, 67, 68, 69, 70, 71])
})

test('hints that keep coming while it is read do not keep a reading from getting on', () => {
  const outbox = new Outbox()
  const queue = Array.from({ length: 4 * PAGE }, (_, index) => row(index + 1, `r${index}`))
  for (let count = 0; count < 100; count += 1) outbox.lookAgain('back')
  outbox.rewind()
  for (let pages = 0; pages < 4; pages += 1) {
    outbox.beginRead()
    outbox.lookAgain('back')
    outbox.endRead(queue.filter(({ seq }) => seq > outbox.scannedTo).slice(0, PAGE), false, 0)
  }
  expect(outbox.scannedTo).toBe(4 * PAGE)
  for (let count = 0; count < 100; count += 1) outbox.lookAgain('back')
  outbox.rewind()
  expect(outbox.scannedTo).toBe(Math.max(0, 4 * PAGE - 1_000))
})

test('recipients that are held take no room from others, and get everything in order once released', () => {
  const strangers = Array.from({ length: 5_000 }, (_, index) => row(index + 1, `stranger ${index % 2_500}`))
  const queue = [...strangers, row(5_001, 'known')]
  const outbox = new Outbox()
  outbox.lookAgain('start')
  for (;;) {
    read(outbox, queue)
    const stranger = [...outbox.chats()].find(({ key }) => key !== 'known')
    if (!stranger) break
    outbox.hold(stranger.key, { numbers: [stranger.key, `number of ${stranger.key}`] })
  }
  expect([...outbox.chats()].map(({ key }) => key)).toEqual(['known'])
  outbox.release('number of stranger 7')
  read(outbox, queue)
  const released = [...outbox.chats()].find(({ key }) => key === 'stranger 7')
  expect(released?.messages.map(({ seq }) => seq)).toEqual([8, 2_508])
  expect(outbox.size).toBe(3)
  outbox.release()
  read(outbox, queue)
  expect(outbox.heldChats).toBe(0)
  expect(outbox.size).toBeGreaterThan(2_000)
})

test('so many chats are remembered as held; what comes after more of them waits, and is neither lost nor out of order', () => {
  const strangers = Array.from({ length: 20_100 }, (_, index) => `stranger ${index}`)
  const order = [...strangers, 'known', ...strangers.slice(-50), 'known']
  const queue = order.map((to, index) => row(index + 1, to))
  const outbox = new Outbox()
  const readFast = () => {
    while (outbox.wantsMore) {
      outbox.rewind()
      for (let isLast = false; !isLast && outbox.wantsMore; ) {
        const rows = queue.slice(outbox.scannedTo, outbox.scannedTo + PAGE)
        isLast = rows.length < PAGE
        outbox.beginRead()
        outbox.endRead(rows, isLast, 0)
      }
    }
  }
  const holdStrangers = () => {
    const found = [...outbox.chats()].filter(({ key }) => key !== 'known')
    for (const { key } of found) outbox.hold(key)
    return found.length > 0
  }
  outbox.lookAgain('start')
  do readFast()
  while (holdStrangers())
  expect(outbox.heldChats).toBe(20_000)
  expect([...outbox.chats()].map(({ key, messages }) => [key, messages.map(({ seq }) => seq)])).toEqual([
    ['known', [20_101, 20_152]],
  ])
  outbox.release()
  const read = new Map<string, number[]>()
  for (readFast(); outbox.size > 0; readFast()) {
    for (const { key, messages } of [...outbox.chats()]) {
      read.set(key, [...(read.get(key) ?? []), ...messages.map(({ seq }) => seq)])
      for (const message of [...messages]) outbox.end(message)
    }
  }
  for (const [index, stranger] of strangers.entries()) {
    const again = index < strangers.length - 50 ? [] : [index + 52]
    expect(read.get(stranger)).toEqual([index + 1, ...again])
  }
})

test('a recipient that is held for a time comes back with its failures, once that time is up', () => {
  const queue = [row(1, 'slow'), row(2, 'slow')]
  const outbox = new Outbox()
  outbox.lookAgain('start')
  read(outbox, queue)
  const [recipient] = outbox.chats()
  recipient!.failures = 3
  outbox.hold('slow', { until: 50 })
  outbox.lookAgain('start')
  read(outbox, queue, 49)
  expect([...outbox.chats()]).toEqual([])
  outbox.lookAgain('start')
  read(outbox, queue, 50)
  expect([...outbox.chats()]).toMatchObject([{ key: 'slow', failures: 3, messages: [{ seq: 1 }, { seq: 2 }] }])
})

test('rows for which there is no room are counted, read or not, until all are read anew', () => {
  const outbox = new Outbox()
  outbox.lookAgain('start')
  const queue = [...Array.from({ length: 100 }, (_, index) => row(index + 1, 'stuck')), row(101, 'free')]
  read(outbox, queue)
  expect(outbox.passedOver).toBe(36)
  expect(['stuck', 'free', 'nobody'].map(to => outbox.passOver(to, 'on'))).toEqual([true, false, false])
  expect(outbox.passedOver).toBe(37)
  outbox.lookAgain('start')
  read(outbox, queue.slice(0, 70))
  expect(outbox.passedOver).toBe(6)
})
