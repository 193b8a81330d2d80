import { describe, expect, test } from 'vitest'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

const OWNER = '5511987654321'
const NEW = '5511977770002'
const STRANGERS = Array.from({ length: 10 }, (_, n) => `551198765000${n}`)
const QUERY = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'w:g2' } } as const
const NOTIFICATION = { stanza: 'notification', direction: 'out', attrs: { type: 'w:gp2' } } as const
const RETRY = { stanza: 'receipt', direction: 'out', attrs: { type: 'retry' } } as const
const RETRY_ACK = { stanza: 'ack', direction: 'in', attrs: { class: 'receipt', type: 'retry' } } as const

/** A group of the owner and the instance, and the number of queries about it since then. */
async function openGroup() {
  const harness = await WhatsappHarness.open()
  const { id, phone } = await harness.link()
  const { group } = await harness.network.createGroup(OWNER, 'Ours', [phone])
  const members = async () => (await harness.store.directory.readGroup(id, group))?.details?.members ?? []
  await until('the group', async () => (await members()).length === 2)
  const send = async (text: string) => {
    const message = await harness.accept(id, group, text)
    await harness.becomes(id, message.id, 'read')
    return message
  }
  await send('before')
  const count = async (when: typeof QUERY | typeof RETRY | typeof RETRY_ACK) => {
    const { rule } = await harness.network.misbehave({ kind: 'rule', rule: { when, do: { delayMs: 0 } } })
    return async () => (await harness.network.scenario()).rules.find(one => one.id === rule)?.fitted ?? 0
  }
  const queries = await count(QUERY)
  /** Adds the new member. WhatsApp does not say so. */
  const addUnannounced = async () => {
    const { rule } = await harness.network.misbehave({ kind: 'rule', rule: { when: NOTIFICATION, do: 'drop' } })
    await harness.network.changeGroup(group, { add: [NEW] })
    const applied = async () => (await harness.network.scenario()).rules.find(one => one.id === rule)?.applied
    await until('the notification to be lost', async () => applied())
    await harness.network.misbehave({ kind: 'remove_rule', id: rule! })
  }
  const texts = async (number: string) =>
    (await harness.network.inbox(number)).filter(one => one.group === group).map(({ text }) => text)
  const close = () => harness[Symbol.asyncDispose]()
  return {
    harness,
    id,
    phone,
    group,
    members,
    send,
    count,
    queries,
    addUnannounced,
    texts,
    [Symbol.asyncDispose]: close,
  }
}

describe.concurrent('a member of a group', () => {
  test('that WhatsApp announces together with another change gets the next message, without a query', async () => {
    await using world = await openGroup()
    const { harness, phone, group, members } = world
    await world.addUnannounced()
    const lid = `${(999_999_999_999_999 - Number(NEW)).toString().padStart(15, '0')}@lid`
    const added = { tag: 'participant', attrs: { jid: lid, phone_number: `${NEW}@s.whatsapp.net` } }
    const content = [
      { tag: 'subject', attrs: { subject: 'Renamed' } },
      { tag: 'add', content: [added] },
    ]
    const attrs = { from: group, type: 'w:gp2', id: '1', t: '1700000000' }
    await harness.network.misbehave({ kind: 'stanza', account: phone, stanza: { tag: 'notification', attrs, content } })
    await until('both changes', async () => (await members()).length === 3)
    expect((await harness.store.directory.findGroup(world.id, group))?.subject).toBe('Renamed')
    await world.send('after')
    await until('the message', async () => (await world.texts(NEW)).length > 0)
    expect(await world.texts(NEW)).toEqual(['after'])
    expect(await world.queries()).toBe(0)
  })

  test('whose notification was lost gets the message after asking for it again, and the next one at once', async () => {
    await using world = await openGroup()
    await world.addUnannounced()
    await world.send('one')
    await until('the message', async () => (await world.texts(NEW)).length > 0)
    const retries = await world.count(RETRY)
    await world.send('two')
    await until('the next message', async () => (await world.texts(NEW)).length > 1)
    expect(await world.texts(NEW)).toEqual(['one', 'two'])
    expect(await world.texts(OWNER)).toEqual(['before', 'one', 'two'])
    expect(await world.members()).toHaveLength(3)
    expect([await world.queries(), await retries()]).toEqual([1, 0])
  })
})

test('requests of people who are not in the group cause one query, and are all refused', async () => {
  await using world = await openGroup()
  const { harness, phone, group } = world
  const { whatsappId } = await world.send('secret')
  const acknowledged = await world.count(RETRY_ACK)
  const ask = { kind: 'ask_again', account: phone, id: whatsappId, group } as const
  for (const contact of STRANGERS) await harness.network.misbehave({ ...ask, contact })
  await until('all requests to be acknowledged', async () => (await acknowledged()) === STRANGERS.length)
  expect(await world.queries()).toBe(1)
  for (const stranger of STRANGERS) expect(await world.texts(stranger)).toEqual([])
})
