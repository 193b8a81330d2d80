import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { MemoryStorage } from './memory-storage.ts'
import { until } from './wait.ts'
import { jid, link, startSimulator, statuses } from './world.ts'

const GROUP = '120363000000000077@g.us'

it('two clients write to each other, and the sender gets the read receipt', async () => {
  const simulator = await startSimulator({ readsForClients: false })
  const [a, b] = [await link(simulator, 'a'), await link(simulator, 'b')]
  const id = await a.send(jid(b.phone), 'hello b')
  const received = await until(() => b.find('hello b'))
  expect(received.key).toMatchObject({ id, remoteJidAlt: jid(a.phone) })
  await b.sock.readMessages([received.key])
  await until(() => statuses(a, id).includes('read'))
  const answer = await b.send(jid(a.phone), 'hello a')
  const answered = await until(() => a.find('hello a'))
  expect(statuses(b, answer)).not.toContain('read')
  await a.sock.readMessages([answered.key])
  await until(() => statuses(b, answer).includes('read'))
  expect(await simulator.inbox(b.phone)).toMatchObject([{ id, from: a.phone, text: 'hello b', copies: 1 }])
  expect(await simulator.inbox(a.phone)).toMatchObject([{ id: answer, from: b.phone, text: 'hello a', copies: 1 }])
  for (let n = 0; n < 5; n++) {
    await a.send(jid(b.phone), `a ${n}`)
    await b.send(jid(a.phone), `b ${n}`)
  }
  await until(() => a.texts().length === 6 && b.texts().length === 6)
})

it('a message waits while the other client is away', async () => {
  const simulator = await startSimulator()
  const [a, b] = [await link(simulator, 'a'), await link(simulator, 'b')]
  b.stop()
  await until(async () => !(await simulator.listAccounts()).every(({ online }) => online))
  await a.send(jid(b.phone), 'kept')
  await until(() => a.seen.acks.length === 1)
  b.reconnect()
  await until(() => b.texts().includes('kept'))
})

it("two clients receive each other's messages in a group", async () => {
  const simulator = await startSimulator()
  const [a, b] = [await link(simulator, 'a'), await link(simulator, 'b')]
  await simulator.joinGroup(GROUP, [a.phone, b.phone])
  expect((await a.sock.groupMetadata(GROUP)).participants).toHaveLength(4)
  for (const text of ['one', 'two']) await a.send(GROUP, text)
  await until(() => b.texts().length === 2)
  expect(b.texts()).toEqual(['one', 'two'])
  await b.send(GROUP, 'three')
  await until(() => a.texts().includes('three'))
  expect(a.find('three')?.key).toMatchObject({ remoteJid: GROUP, participantAlt: jid(b.phone) })
  expect((await simulator.inbox(a.phone)).map(({ text }) => text)).toEqual(['three'])
})

it('a message that a client could not decrypt is sent again', async () => {
  const simulator = await startSimulator()
  const [a, b] = [await link(simulator, 'a'), await link(simulator, 'b')]
  await a.send(jid(b.phone), 'one')
  await until(() => b.texts().includes('one'))
  await b.send(jid(a.phone), 'two')
  await until(() => a.texts().includes('two'))
  for (const key of b.state.keys.keys()) if (key.startsWith('session/')) b.state.keys.delete(key)
  await a.send(jid(b.phone), 'three')
  await until(() => b.texts().includes('three'))
  expect((await simulator.inbox(b.phone)).map(({ text }) => text)).toEqual(['one', 'three'])
})

it('a client is notified that the other account has a new client, and writes to the new one', async () => {
  const simulator = await startSimulator()
  const [a, b] = [await link(simulator, 'a'), await link(simulator, 'b')]
  await a.send(jid(b.phone), 'to the first')
  await until(() => b.texts().includes('to the first'))
  const second = await link(simulator, 'b')
  await until(() => b.seen.closes.includes(401))
  const text = 'to the second'
  await until(async () => {
    await a.send(jid(b.phone), text)
    return second.texts().includes(text)
  })
})

describe('no other phone reads a message to an account that is away:', () => {
  async function startTwo() {
    const simulator = await startSimulator({ storage: new MemoryStorage() })
    const [a, b] = [await link(simulator, 'a'), await link(simulator, 'b')]
    await a.send(jid(b.phone), 'first')
    await until(() => b.texts().includes('first'))
    return { simulator, a, b }
  }

  it('while its phone is off, the message waits, and its client cannot log in', async () => {
    const { simulator, a, b } = await startTwo()
    await simulator.switchPhone('b', false)
    await until(() => b.seen.closes.includes(503))
    b.reconnect()
    await until(() => b.seen.closes.filter(code => code === 503).length === 2)
    await a.send(jid(b.phone), 'second')
    await until(() => a.seen.acks.length === 2)
    await simulator.switchPhone('b', true)
    b.reconnect()
    await until(() => b.texts().includes('second'))
    expect((await simulator.inbox(b.phone)).map(({ text }) => text)).toEqual(['first', 'second'])
  })

  it('until it is opened, the message is not acknowledged, and other messages are', async () => {
    const { simulator, a, b } = await startTwo()
    await simulator.joinGroup(GROUP, [a.phone, b.phone])
    await simulator.closeAccount('b')
    const id = '3EB0AAAAAAAAAAAAAAAA01'
    const repeat = () => a.sock.sendMessage(jid(b.phone), { text: 'second' }, { messageId: id })
    await repeat()
    await a.send(GROUP, 'third')
    await a.send(jid('5511987654321'), 'to a contact')
    await until(() => a.seen.acks.length === 2)
    await simulator.openAccount('b')
    b.reconnect()
    await until(() => b.isOpen)
    expect(a.seen.acks).toHaveLength(2)
    await repeat()
    await until(() => b.texts().includes('second') && statuses(a, id).includes('read'))
  })

  it.each(['was removed', 'is not opened within a minute'])('if it %s, the message is refused', async what => {
    const { simulator, a, b } = await startTwo()
    await simulator.joinGroup(GROUP, [a.phone, b.phone])
    if (what === 'was removed') await simulator.removeAccount('b')
    else {
      await simulator.closeAccount('b')
      const now = performance.now.bind(performance)
      const later = vi.spyOn(performance, 'now').mockImplementation(() => now() + 60_000)
      onTestFinished(() => later.mockRestore())
    }
    const id = await a.send(jid(b.phone), 'second')
    await until(() => statuses(a, id).includes('404'))
    const toGroup = await a.send(GROUP, 'third')
    await until(() => statuses(a, toGroup).filter(status => status === 'read').length === 2)
    expect(statuses(a, id)).toEqual(['404'])
  })
})
