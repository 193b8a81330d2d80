import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { MemoryStorage } from './memory-storage.ts'
import { until } from './wait.ts'
import { jid, link, startClient, startSimulator, statuses } from './world.ts'

const CONTACT = '5511999990001'
const GROUP = '120363000000000055@g.us'

/** Ends the network as a kill would, as far as the storage can tell, and starts another on the stored state. */
async function restart(storage: MemoryStorage, simulator: Awaited<ReturnType<typeof startSimulator>>, key: string) {
  const stored = storage.afterKill()
  await simulator.close()
  const next = await startSimulator({ storage: stored })
  await next.openAccount(key)
  return { simulator: next, storage: stored }
}

describe('a network restarted on the same storage', () => {
  it('sends a client the pending receipts and the answer', async () => {
    const storage = new MemoryStorage()
    // No receipt and no answer must reach the first client before it stops.
    const timings = { deliveredAfterMs: 8_000, readAfterMs: 8_050, answeredAfterMs: 8_000 }
    const first = await startSimulator({ storage, timings })
    const client = await link(first, 'a')
    const id = await client.send(jid(CONTACT), 'hello')
    const echoed = await client.send(jid('15005550005'), 'echo')
    await until(() => client.seen.acks.length === 2)
    client.stop()
    const { simulator } = await restart(storage, first, 'a')
    const again = startClient(simulator.url, client.state)
    await until(() => statuses(again, id).includes('read') && statuses(again, echoed).includes('read'))
    expect(statuses(again, id)).toEqual(['delivered', 'read'])
    await until(() => again.texts().includes('echo'))
    expect(client.seen.receipts).toEqual([])
    expect(await simulator.inbox(CONTACT)).toMatchObject([{ id, text: 'hello', copies: 1 }])
  })

  it('delivers messages that contacts wrote while the client was away, and keeps its sessions', async () => {
    const storage = new MemoryStorage()
    const first = await startSimulator({ storage })
    const client = await link(first, 'a')
    await client.send(jid(CONTACT), 'one')
    await first.writeAs({ from: CONTACT, to: client.phone, text: 'two', name: 'Ana' })
    await client.send(GROUP, 'group one')
    await until(() => client.seen.acks.length === 2)
    await first.writeAs({ from: CONTACT, to: client.phone, text: 'group two', group: GROUP })
    await until(() => client.texts().length === 2)
    client.stop()
    await until(async () => !(await first.listAccounts())[0]!.online)
    await first.writeAs({ from: CONTACT, to: client.phone, text: 'three' })
    await first.writeAs({ from: CONTACT, to: client.phone, text: 'group three', group: GROUP })

    const { simulator } = await restart(storage, first, 'a')
    const again = startClient(simulator.url, client.state)
    await until(() => again.texts().length === 2)
    expect(again.texts()).toEqual(['three', 'group three'])
    expect(again.find('three')).toMatchObject({ pushName: 'Ana' })
    await again.send(jid(CONTACT), 'four')
    await again.send(GROUP, 'group four')
    await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'group five', group: GROUP })
    await until(() => again.texts().includes('group five') && again.seen.acks.length === 2)
    const received = await simulator.inbox(CONTACT)
    expect(received.map(({ text }) => text)).toEqual(['one', 'four', 'group four'])
    expect(again.seen.messages.every(({ message }) => !message.messageStubType)).toBe(true)
  })

  it('keeps block lists, privacy settings, profiles and groups', async () => {
    const storage = new MemoryStorage()
    const first = await startSimulator({ storage })
    const client = await link(first, 'a')
    const { group } = await first.createGroup(CONTACT, 'Lunch', [client.phone])
    await first.changeGroup(group, { description: 'At eight', locked: true, invite: 'get' })
    await first.setProfile({ from: CONTACT, to: client.phone, about: 'At work' })
    await client.sock.onWhatsApp(jid(CONTACT))
    await client.sock.updateBlockStatus(jid(CONTACT), 'block')
    await client.sock.updateLastSeenPrivacy('none')
    const before = await first.group(group)
    client.stop()
    const { simulator } = await restart(storage, first, 'a')
    const again = startClient(simulator.url, client.state)
    await until(() => again.isOpen)
    expect(await simulator.group(group)).toEqual(before)
    expect(await again.sock.groupMetadata(group)).toMatchObject({ desc: 'At eight', restrict: true })
    expect(await simulator.profile(CONTACT, client.phone)).toMatchObject({ about: 'At work' })
    expect((await simulator.profile(client.phone)).blocked).toEqual([CONTACT])
    expect(await again.sock.fetchPrivacySettings(true)).toMatchObject({ last: 'none' })
  })

  it('still counts a second copy of an ID as the same message', async () => {
    const storage = new MemoryStorage()
    // The answer must not reach the first client before it stops.
    const first = await startSimulator({ storage, timings: { answeredAfterMs: 8_000 } })
    const client = await link(first, 'a')
    const messageId = '3EB0AAAAAAAAAAAAAAAA03'
    await client.sock.sendMessage(jid('15005550005'), { text: 'once' }, { messageId })
    await until(() => client.seen.acks.length === 1)
    client.stop()
    const { simulator } = await restart(storage, first, 'a')
    const again = startClient(simulator.url, client.state)
    await until(() => again.isOpen)
    await again.sock.sendMessage(jid('15005550005'), { text: 'once' }, { messageId })
    await until(() => again.seen.acks.length === 1)
    await until(() => again.texts().length > 0)
    expect(await simulator.inbox('15005550005')).toMatchObject([{ id: messageId, copies: 2 }])
    expect(again.texts()).toEqual(['once'])
  })

  it('keeps the phone, and the one-time keys not yet used', async () => {
    const storage = new MemoryStorage()
    const first = await startSimulator({ storage, claimedPreKeys: 0 })
    const client = await link(first, 'a')
    client.stop()
    const { simulator, storage: stored } = await restart(storage, first, 'a')
    const again = startClient(simulator.url, client.state)
    await until(() => again.isOpen)
    const kept = () => [...(stored.scopes.get('a')?.keys() ?? [])].filter(key => key.startsWith('prekey/')).length
    const before = kept()
    await simulator.writeAs({ from: CONTACT, to: client.phone, text: 'takes one' })
    await until(() => again.texts().includes('takes one'))
    expect(kept()).toBe(before - 1)
  })

  it('delivers what was queued while the clock was ahead', async () => {
    const storage = new MemoryStorage()
    const first = await startSimulator({ storage })
    const client = await link(first, 'a')
    client.stop()
    await until(async () => !(await first.listAccounts())[0]!.online)
    const now = Date.now()
    const ahead = vi.spyOn(Date, 'now').mockReturnValue(now + 86_400_000)
    onTestFinished(() => ahead.mockRestore())
    await first.writeAs({ from: CONTACT, to: client.phone, text: 'hello' })
    ahead.mockRestore()
    const { simulator, storage: stored } = await restart(storage, first, 'a')
    const again = startClient(simulator.url, client.state)
    await until(() => again.texts().includes('hello'))
    await until(() => ![...stored.scopes.get('a')!.keys()].some(key => key.startsWith('queue/')))
  })

  it('gives the sender the read receipt of a message that another account had already recorded', async () => {
    const storage = new MemoryStorage()
    const first = await startSimulator({ storage }, [])
    const [a, b] = [await link(first, 'a'), await link(first, 'b')]
    await a.send(jid(b.phone), 'one')
    await until(() => b.texts().includes('one'))
    let killed: MemoryStorage | null = null
    const write = storage.write.bind(storage)
    vi.spyOn(storage, 'write').mockImplementation(async (scope, changes) => {
      const isReceipt = scope === 'a' && changes.some(({ key, value }) => key.startsWith('queue/') && value !== null)
      if (isReceipt) killed ??= storage.afterKill()
      if (killed) throw new Error('killed')
      await write(scope, changes)
    })
    const message = [jid(b.phone), { text: 'two' }, { messageId: '3EB0AAAAAAAAAAAAAAAA01' }] as const
    await a.sock.sendMessage(...message)
    const stored = await until(() => killed)
    for (const client of [a, b]) client.stop()

    const simulator = await startSimulator({ storage: stored })
    for (const key of ['a', 'b']) await simulator.openAccount(key)
    const again = startClient(simulator.url, a.state)
    await until(() => again.isOpen)
    await again.sock.sendMessage(...message)
    await until(() => statuses(again, message[2].messageId).includes('read'))
    expect(await simulator.inbox(b.phone)).toMatchObject([{ text: 'one' }, { text: 'two', copies: 2 }])
  })
})

describe('the storage', () => {
  it('is written before a message is acknowledged: while it fails there is no acknowledgement', async () => {
    const storage = new MemoryStorage()
    const faults: string[] = []
    const simulator = await startSimulator({ storage }, faults)
    const client = await link(simulator, 'a')
    await client.send(jid(CONTACT), 'first')
    await until(() => client.seen.acks.length === 1)
    storage.broken = true
    const write = simulator.writeAs({ from: CONTACT, to: client.phone, text: 'x' })
    await expect(write).rejects.toThrow('the storage is broken')
    await client.send(jid(CONTACT), 'second').catch(() => undefined)
    await until(() => client.seen.closes.includes(428))
    expect(client.seen.acks).toHaveLength(1)
    expect(faults.length).toBeGreaterThan(0)
    storage.broken = false
    client.reconnect()
    await until(() => client.isOpen)
    const id = await client.send(jid(CONTACT), 'third')
    await until(() => statuses(client, id).includes('read'))
  })

  it('contains nothing of a removed account, and the whole state of a closed one', async () => {
    const storage = new MemoryStorage()
    const simulator = await startSimulator({ storage })
    const [a, b] = [await link(simulator, 'a'), await link(simulator, 'b')]
    await a.send(jid(CONTACT), 'x')
    await simulator.removeAccount('a')
    await simulator.removeAccount('never opened')
    await simulator.closeAccount('b')
    await until(() => a.seen.closes.includes(401) && b.seen.closes.includes(503))
    expect([...storage.scopes.keys()]).toEqual(['b'])
    b.reconnect()
    await until(() => b.seen.closes.filter(code => code === 503).length === 2)
    const other = await startSimulator({ storage })
    const moved = startClient(other.url, b.state)
    await until(() => moved.seen.closes.includes(503))
    await other.openAccount('b')
    moved.reconnect()
    await until(() => moved.isOpen)
    a.reconnect()
    await until(() => a.seen.closes.filter(code => code === 401).length === 2)
  })

  it('has the whole state of an account that is closed and reopened at once', async () => {
    const storage = new MemoryStorage()
    const simulator = await startSimulator({ storage })
    const { phone } = await simulator.openAccount('a')
    const written = Array.from({ length: 20 }, (_, n) => simulator.writeAs({ from: CONTACT, to: phone, text: `${n}` }))
    const closed = simulator.closeAccount('a')
    await simulator.openAccount('a')
    await closed
    const kept = (await Promise.allSettled(written)).filter(({ status }) => status === 'fulfilled').length
    expect(await simulator.inbox(phone)).toHaveLength(kept)
  })
})
