import { expect, it } from 'vitest'
import { until } from './wait.ts'
import { link, startSimulator, statuses } from './world.ts'

const GROUP = '120363000000000042@g.us'
const FOREIGN = '120363000000000001@g.us'

it('any group has the account and two simulated members, named by LID with their number', async () => {
  const simulator = await startSimulator()
  const client = await link(simulator, 'a')
  const { participants, addressingMode } = await client.sock.groupMetadata(GROUP)
  expect(addressingMode).toBe('lid')
  expect(participants).toHaveLength(3)
  expect(participants.map(({ phoneNumber }) => phoneNumber)).toContain(`${client.phone}@s.whatsapp.net`)
  for (const { id } of participants) expect(id).toMatch(/^\d{15}@lid$/)
  expect((await client.sock.groupMetadata(GROUP)).participants).toEqual(participants)
})

it("both members decrypt the client's message, and each sends its receipts", async () => {
  const simulator = await startSimulator()
  const client = await link(simulator, 'a')
  const ids = [await client.send(GROUP, 'one'), await client.send(GROUP, 'two')]
  for (const id of ids) await until(() => statuses(client, id).length === 4)
  for (const id of ids) expect(statuses(client, id).sort()).toEqual(['delivered', 'delivered', 'read', 'read'])
  await until(() => ids.every(id => client.seen.read.has(id)))
  const { participants } = await client.sock.groupMetadata(GROUP)
  for (const { phoneNumber } of participants) {
    const number = phoneNumber!.split('@')[0]!
    if (number === client.phone) continue
    expect(await simulator.inbox(number)).toMatchObject([
      { id: ids[0], text: 'one', group: GROUP, copies: 1 },
      { id: ids[1], text: 'two', group: GROUP, copies: 1 },
    ])
  }
})

it("a contact that writes in a group joins it, and the client receives its messages like a member's", async () => {
  const simulator = await startSimulator()
  const client = await link(simulator, 'a')
  await client.send(GROUP, 'before')
  await until(() => client.seen.acks.length === 1)
  const write = (text: string) =>
    simulator.writeAs({ from: '5511999990001', to: client.phone, text, group: GROUP, name: 'Ana' })
  await write('hello')
  await write('all')
  await until(() => client.texts().length === 2)
  const message = client.find('hello')!
  expect(message).toMatchObject({ pushName: 'Ana' })
  expect(message.key).toMatchObject({
    remoteJid: GROUP,
    participant: expect.stringMatching(/@lid$/),
    participantAlt: '5511999990001@s.whatsapp.net',
  })
  expect((await client.sock.groupMetadata(GROUP)).participants).toHaveLength(4)
  const id = await client.send(GROUP, 'after')
  await until(() => statuses(client, id).length === 6)
  expect(await simulator.inbox('5511999990001')).toMatchObject([{ id, text: 'after', group: GROUP }])
})

it('the foreign group refuses its metadata, messages to it, and messages of contacts in it', async () => {
  const simulator = await startSimulator()
  const client = await link(simulator, 'a')
  await expect(client.sock.groupMetadata(FOREIGN)).rejects.toMatchObject({ data: 403 })
  const write = simulator.writeAs({ from: '5511999990001', to: client.phone, text: 'x', group: FOREIGN })
  await expect(write).rejects.toMatchObject({ code: 'not_a_member' })
  const metadata = await client.sock.groupMetadata(GROUP)
  const knowing = await link(simulator, 'b', { cachedGroupMetadata: async () => ({ ...metadata, id: FOREIGN }) })
  const id = await knowing.send(FOREIGN, 'x')
  await until(() => statuses(knowing, id).length > 0)
  expect(statuses(knowing, id)).toEqual(['403'])
})
