import { describe, expect, it } from 'vitest'
import { until } from './wait.ts'
import { jid, link, startSimulator, statuses } from './world.ts'

const CONTACT = '5511999990001'

describe('a text to a contact', () => {
  it('is acknowledged, decrypted by the contact, delivered and read, in this order', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    const ids = [await client.send(jid(CONTACT), 'olá 👋'), await client.send(jid(CONTACT), 'second')]
    for (const id of ids) await until(() => statuses(client, id).length === 2)
    for (const id of ids) expect(statuses(client, id)).toEqual(['delivered', 'read'])
    await until(() => ids.every(id => client.seen.read.has(id)))
    expect(client.seen.acks).toEqual(ids.map(id => ({ id, error: undefined })))
    expect(await simulator.inbox(CONTACT)).toEqual([
      { id: ids[0], from: client.phone, text: 'olá 👋', receivedAt: expect.any(Number), copies: 1 },
      { id: ids[1], from: client.phone, text: 'second', receivedAt: expect.any(Number), copies: 1 },
    ])
  })

  it('is one message on the phone, however often the same ID arrives', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    const again = () => client.sock.sendMessage(jid(CONTACT), { text: 'once' }, { messageId: '3EB0AAAAAAAAAAAAAAAA01' })
    await again()
    await again()
    await until(() => client.seen.acks.length === 2)
    expect(await simulator.inbox(CONTACT)).toMatchObject([{ id: '3EB0AAAAAAAAAAAAAAAA01', text: 'once', copies: 2 }])
  })

  it('can be sent to the LID as well as to the number', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'hello' })
    const lid = await until(() => client.seen.messages[0]?.message.key.remoteJid)
    expect(lid).toMatch(/@lid$/)
    const id = await client.send(lid, 'answer')
    await until(() => statuses(client, id).includes('read'))
    expect(await simulator.inbox(CONTACT)).toMatchObject([{ id, text: 'answer' }])
  })

  it("reaches only the account's own contact: two accounts share no contact with the same number", async () => {
    const simulator = await startSimulator()
    const [a, b] = [await link(simulator, 'a'), await link(simulator, 'b')]
    await a.send(jid(CONTACT), 'from a')
    await b.send(jid(CONTACT), 'from b')
    await until(() => a.seen.receipts.length === 2 && b.seen.receipts.length === 2)
    expect((await simulator.inbox(CONTACT)).map(({ text }) => text)).toEqual(['from a', 'from b'])
    await simulator.writeAs({ from: CONTACT, to: a.phone, text: 'to a' })
    await until(() => a.texts().includes('to a'))
    expect(b.texts()).toEqual([])
  })
})

describe('numbers with a special behaviour', () => {
  it('15005550001 is not on WhatsApp', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    const found = await client.sock.onWhatsApp(CONTACT, '15005550001', '15005550002')
    expect(found?.map(one => one.jid)).toEqual([jid(CONTACT), jid('15005550002')])
  })

  it('15005550002 delivers and never reads, 15005550003 does neither, 15005550006 reads without delivering', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    const [delivers, silent, reads] = [
      await client.send(jid('15005550002'), 'x'),
      await client.send(jid('15005550003'), 'x'),
      await client.send(jid('15005550006'), 'x'),
    ]
    const last = await client.send(jid(CONTACT), 'later than all of them')
    await until(() => statuses(client, last).includes('read'))
    expect(statuses(client, delivers!)).toEqual(['delivered'])
    expect(statuses(client, silent!)).toEqual([])
    expect(statuses(client, reads!)).toEqual(['read'])
    expect(await simulator.inbox('15005550003')).toHaveLength(1)
  })

  it('15005550004 is refused with error 421', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    const id = await client.send(jid('15005550004'), 'x')
    await until(() => statuses(client, id).length > 0)
    expect(statuses(client, id)).toEqual(['421'])
    expect(await simulator.inbox('15005550004')).toEqual([])
  })

  it('15005550005 answers with the same text, once per ID', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    const send = () =>
      client.sock.sendMessage(jid('15005550005'), { text: 'echo' }, { messageId: '3EB0AAAAAAAAAAAAAAAA02' })
    await send()
    await send()
    await until(() => client.texts().includes('echo'))
    await client.send(jid('15005550005'), 'last')
    await until(() => client.texts().includes('last'))
    expect(client.texts()).toEqual(['echo', 'last'])
    expect(client.seen.messages[0]?.message.key.remoteJidAlt).toBe(jid('15005550005'))
  })
})

describe('a contact that writes', () => {
  it('is named by LID, with its number and push name', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    const { id } = await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'hello', name: 'Ana' })
    const { message, type } = await until(() => client.seen.messages[0])
    expect(message).toMatchObject({ pushName: 'Ana', message: { conversation: 'hello' } })
    expect(message.key).toMatchObject({
      id,
      fromMe: false,
      remoteJid: expect.stringMatching(/@lid$/),
      remoteJidAlt: jid(CONTACT),
    })
    expect(type).toBe('notify')
    expect(await simulator.inbox(client.phone)).toMatchObject([{ id, from: CONTACT, text: 'hello', copies: 1 }])
  })

  it('writes many messages in order', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    const texts = Array.from({ length: 30 }, (_, n) => `number ${n}`)
    await Promise.all(texts.map(text => simulator.writeAs({ from: CONTACT, to: client.phone, text })))
    await until(() => client.texts().length === texts.length)
    expect(client.texts()).toEqual(texts)
  })

  it('reaches a client that was away, marked as offline, and is not delivered again', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    client.stop()
    await until(async () => !(await simulator.listAccounts())[0]!.online)
    for (const text of ['one', 'two', 'three']) await simulator.writeAs({ from: CONTACT, to: client.phone, text })
    client.reconnect()
    await until(() => client.texts().length === 3)
    expect(client.texts()).toEqual(['one', 'two', 'three'])
    expect(new Set(client.seen.messages.map(({ type }) => type))).toEqual(new Set(['append']))
    await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'four' })
    await until(() => client.texts().includes('four'))
    client.stop()
    await until(async () => !(await simulator.listAccounts())[0]!.online)
    client.reconnect()
    await until(() => client.isOpen)
    await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'five' })
    await until(() => client.texts().includes('five'))
    expect(client.texts()).toEqual(['one', 'two', 'three', 'four', 'five'])
  })

  it('a text that the owner writes on the phone reaches the client as its own, in a chat or a group', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    const group = '120363000000000777@g.us'
    for (const to of [CONTACT, group]) {
      await simulator.misbehave({ kind: 'write_on_phone', account: client.phone, to, text: `to ${to}` })
      const { key } = await until(() => client.find(`to ${to}`))
      expect(key).toMatchObject({ fromMe: true, ...(to === group && { remoteJid: group }) })
    }
    expect(await simulator.inbox(CONTACT)).toMatchObject([{ from: client.phone, text: `to ${CONTACT}` }])
    expect(await simulator.inbox(client.phone)).toEqual([])
  })

  it('encrypts a message again if the client has lost its session and asks for it', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'first' })
    await until(() => client.texts().includes('first'))
    await client.send(jid(CONTACT), 'makes the session one of plain messages')
    await until(() => client.seen.receipts.length === 2)
    for (const key of client.state.keys.keys()) if (key.startsWith('session/')) client.state.keys.delete(key)
    const { id } = await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'second' })
    await until(() => client.texts().includes('second'))
    const copies = client.seen.messages.filter(({ message }) => message.key.id === id)
    expect(copies.map(({ message }) => message.messageStubType ?? 0)).toEqual([2, 0])
    await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'third' })
    await until(() => client.texts().includes('third'))
  })

  it("the account's phone records how often the client asked for a message again", async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    const message = { from: CONTACT, to: client.phone }
    await simulator.writeAs({ ...message, text: 'first', undecryptable: true })
    await simulator.writeAs({ ...message, text: 'second' })
    await until(() => client.texts().length === 2)
    const [first, second] = await simulator.inbox(client.phone)
    expect(first).toMatchObject({ text: 'first', askedFor: 1 })
    expect(second).not.toHaveProperty('askedFor')
  })

  it('a message stays unreadable, however often it is delivered, until the client asks for it again', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    const when = { stanza: 'receipt', direction: 'in', times: 1 } as const
    await simulator.misbehave({ kind: 'rule', rule: { when, do: 'cut' } })
    const { id } = await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'once', undecryptable: true })
    await until(() => client.seen.closes.length === 1)
    expect(client.texts()).toEqual([])
    client.reconnect()
    await until(() => client.texts().includes('once'))
    expect(await simulator.inbox(client.phone)).toMatchObject([{ id, askedFor: 1 }])
  })

  it('asks again for a message that it cannot read, and then receives it', async () => {
    const simulator = await startSimulator()
    const client = await link(simulator, 'a')
    await client.send(jid(CONTACT), 'first')
    await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'so that sessions are established' })
    await until(() => client.texts().length === 1)
    const sessions = [...client.state.keys].filter(([key]) => key.startsWith('session/'))
    await client.send(jid(CONTACT), 'second')
    await until(async () => (await simulator.inbox(CONTACT)).length === 2)
    // The client forgets that it has sent "second", and encrypts "third" with a key already used.
    for (const [key, session] of sessions) client.state.keys.set(key, session)
    const id = await client.send(jid(CONTACT), 'third')
    await until(() => statuses(client, id).includes('read'))
    expect((await simulator.inbox(CONTACT)).map(({ text }) => text)).toEqual(['first', 'second', 'third'])
  })

  it('cannot be an account, write to an unknown account, or send an empty text', async () => {
    const simulator = await startSimulator()
    const [a, b] = [await simulator.openAccount('a'), await simulator.openAccount('b')]
    const write = (from: string, to: string, text: string) => simulator.writeAs({ from, to, text })
    await expect(write(a.phone, b.phone, 'x')).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(write(CONTACT, '5511999990002', 'x')).rejects.toMatchObject({ code: 'unknown_account' })
    await expect(write(CONTACT, a.phone, '')).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(write('+55', a.phone, 'x')).rejects.toMatchObject({ code: 'invalid_argument' })
  })
})
