import type { Action, When } from '@pombal/simulator'
import { proto } from 'baileys'
import { describe, expect, test } from 'vitest'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'

/** What goes wrong with messages to the instance; docs/whatsapp-situations.md lists these. */

const CONTACT = '5511987654321'
const GROUP = '120363000000000777@g.us'
const INCOMING = { stanza: 'message', direction: 'out' } as const
/** The client's receipt for a message. */
const RECEIPT = { stanza: 'receipt', direction: 'in', attrs: { type: '' } } as const
const RECEIPT_UNSEEN = { stanza: 'receipt', direction: 'in', attrs: { type: 'inactive' } } as const
const RETRY = { stanza: 'receipt', direction: 'in', attrs: { type: 'retry' } } as const

async function openHarness(...rules: readonly (readonly [When, Action])[]) {
  const harness = await WhatsappHarness.open()
  const linked = await harness.link()
  await misbehave(harness, ...rules)
  return { ...linked, harness, [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose]() }
}

async function misbehave(harness: WhatsappHarness, ...rules: readonly (readonly [When, Action])[]): Promise<void> {
  for (const [when, action] of rules) await harness.network.misbehave({ kind: 'rule', rule: { when, do: action } })
}

/** The texts of the events, once there are this many of them. */
async function texts(harness: WhatsappHarness, id: string, count: number): Promise<unknown[]> {
  await until(`${count} events`, async () => (await harness.receivedIds(id)).length >= count)
  const events = await harness.received(id)
  return events.map(({ text }) => text)
}

const numbered = (text: string, count: number) => Array.from({ length: count }, (_, index) => `${text} ${index + 1}`)

describe.concurrent('a message to the instance', () => {
  test.each<[string, readonly (readonly [When, Action])[]]>([
    ['cut off before it arrives', [[{ ...INCOMING, times: 1 }, 'cut']]],
    ['cut off right after it', [[{ ...INCOMING, times: 1 }, 'cut_after']]],
    [
      'whose receipt never arrives, with the socket',
      [
        [{ ...RECEIPT_UNSEEN, times: 1 }, 'cut'],
        [{ ...RECEIPT, times: 1 }, 'cut'],
      ],
    ],
    ['that comes twice', [[INCOMING, 'double']]],
    ['that comes late and in another order', [[INCOMING, { delayMs: 0, jitterMs: 400 }]]],
    ['that we cannot decrypt: the sender sends it again', [[{ ...INCOMING, times: 1 }, 'garble']]],
    ['that we cannot decrypt twice', [[{ ...INCOMING, times: 2 }, 'garble']]],
  ])('%s: is one event, and so is the next one', async (_, rules) => {
    await using world = await openHarness(...rules)
    const { harness, id, phone } = world
    await harness.network.misbehave({ kind: 'write', from: CONTACT, to: phone, text: 'text', count: 3 })
    expect((await texts(harness, id, 3)).sort()).toEqual(numbered('text', 3))
    await harness.network.misbehave({ kind: 'clear' })
    await harness.network.misbehave({ kind: 'write', from: CONTACT, to: phone, text: 'later', count: 1 })
    expect((await texts(harness, id, 4)).sort()).toEqual(['later 1', ...numbered('text', 3)])
  })

  test('that cannot be decrypted and is not sent again is no event, and delays nothing', async () => {
    await using world = await openHarness([{ ...INCOMING, times: 1 }, 'garble'], [RETRY, 'drop'])
    const { harness, id, phone } = world
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'lost' })
    await harness.network.writeAs({ from: '5511987650000', to: phone, text: 'behind it' })
    expect(await texts(harness, id, 1)).toEqual(['behind it'])
  })

  test('in a group that cannot be decrypted is sent again, and is one event', async () => {
    await using world = await openHarness()
    const { harness, id, phone } = world
    await harness.network.joinGroup(GROUP, [CONTACT, phone])
    await misbehave(harness, [{ ...INCOMING, times: 1 }, 'garble'])
    for (const text of ['one', 'two']) await harness.network.writeAs({ from: CONTACT, to: phone, text, group: GROUP })
    expect((await texts(harness, id, 2)).sort()).toEqual(['one', 'two'])
  })

  test('from a contact that has changed its identity is one event', async () => {
    await using world = await openHarness()
    const { harness, id, phone } = world
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'old phone' })
    await texts(harness, id, 1)
    await harness.network.misbehave({ kind: 'change_identity', account: phone, contact: CONTACT })
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'new phone' })
    expect(await texts(harness, id, 2)).toEqual(['old phone', 'new phone'])
    const { id: answer } = await harness.accept(id, CONTACT, 'to the new phone')
    await harness.becomes(id, answer, 'read')
  })
})

describe.concurrent('a sender', () => {
  test.each<[string, Action, object]>([
    ['LID, with the number beside it', { address: 'lid' }, { from: CONTACT }],
    ['number, with the LID beside it', { address: 'pn' }, { from: CONTACT }],
    ['number alone', { address: 'pn', alternate: false }, { from: CONTACT }],
    ['LID alone, never seen before', { address: 'lid', alternate: false }, { addressing: 'lid' }],
  ])('named by %s', async (_, action, expected) => {
    await using world = await openHarness([INCOMING, action])
    const { harness, id, phone } = world
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'who am I' })
    await texts(harness, id, 1)
    const [event] = await harness.received(id)
    expect(event).toMatchObject(expected)
    if ('from' in expected) expect(event).not.toHaveProperty('addressing')
  })

  test('named by number alone is reported although WhatsApp refuses to look up the LID', async () => {
    const lookUp = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' } } as const
    await using world = await openHarness([lookUp, { error: '429' }], [INCOMING, { address: 'pn', alternate: false }])
    const { harness, id, phone } = world
    for (const text of ['one', 'two']) await harness.network.writeAs({ from: CONTACT, to: phone, text })
    expect(await texts(harness, id, 2)).toEqual(['one', 'two'])
    expect((await harness.received(id))[0]).toMatchObject({ from: CONTACT })
  })

  test('named by LID alone is reported with its number once WhatsApp has given it, even after a restart', async () => {
    await using world = await openHarness()
    const { harness, id, phone, connection } = world
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'with number' })
    await texts(harness, id, 1)
    await harness.stop(connection)
    await harness.connect(id)
    await misbehave(harness, [INCOMING, { address: 'lid', alternate: false }])
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'without' })
    await texts(harness, id, 2)
    expect((await harness.received(id))[1]).toMatchObject({ from: CONTACT, text: 'without' })
  })

  test('in a group that is neither a number nor a LID, such as an assistant, is an event that says so', async () => {
    await using world = await openHarness()
    const { harness, id, phone } = world
    await harness.network.joinGroup(GROUP, [CONTACT, phone])
    const group = { ...INCOMING, contact: CONTACT }
    await misbehave(
      harness,
      [group, { without: ['participant_pn', 'addressing_mode'] }],
      [group, { set: { participant: '867051314767696@bot' } }],
    )
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'ask me', group: GROUP })
    expect(await texts(harness, id, 1)).toEqual(['ask me'])
    const [event] = await harness.received(id)
    const sender = { from: '867051314767696', addressing: 'other', phone: null, lid: null }
    expect(event).toMatchObject({ ...sender, group: GROUP, chat: GROUP })
  })

  test('named by LID in a group, without its number', async () => {
    await using world = await openHarness([INCOMING, { address: 'lid', alternate: false }])
    const { harness, id, phone } = world
    await harness.network.joinGroup(GROUP, [CONTACT, phone])
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'who am I', group: GROUP })
    await texts(harness, id, 1)
    expect((await harness.received(id))[0]).toMatchObject({ group: GROUP, addressing: 'lid' })
  })
})

describe.concurrent('messages that WhatsApp kept while the instance was offline', () => {
  test('hundreds of messages, out of order, some twice, through a cut: each is one event', async () => {
    await using world = await openHarness()
    const { harness, id, phone, connection } = world
    await harness.stop(connection)
    await harness.network.misbehave({ kind: 'seed', seed: 7 })
    const contacts = ['5511987650001', '5511987650002', '5511987650003']
    for (const from of contacts) {
      await harness.network.misbehave({ kind: 'write', from, to: phone, text: from, count: 100 })
    }
    await misbehave(
      harness,
      [{ ...INCOMING, probability: 0.2 }, 'double'],
      [
        { ...INCOMING, probability: 0.5 },
        { delayMs: 0, jitterMs: 150 },
      ],
      [{ ...INCOMING, nth: 120 }, 'cut'],
    )
    await harness.connect(id)
    const all = await texts(harness, id, 300)
    expect(all.sort()).toEqual(contacts.flatMap(from => numbered(from, 100)).sort())
    const { id: answer } = await harness.accept(id, contacts[0]!, 'got them')
    await harness.becomes(id, answer, 'read')
    expect(await harness.received(id)).toHaveLength(300)
  })

  test('arrive before later ones', async () => {
    await using world = await openHarness()
    const { harness, id, phone, connection } = world
    await harness.stop(connection)
    await harness.network.misbehave({ kind: 'write', from: CONTACT, to: phone, text: 'text', count: 60 })
    await harness.connect(id)
    await until('a first event', async () => (await harness.receivedIds(id)).length > 0)
    for (const text of ['text 61', 'text 62']) await harness.network.writeAs({ from: CONTACT, to: phone, text })
    expect(await texts(harness, id, 62)).toEqual(numbered('text', 62))
  })

  test('receipts for messages sent before', async () => {
    await using world = await openHarness([{ stanza: 'receipt', direction: 'out' }, 'drop'])
    const { harness, id, connection } = world
    const { id: message } = await harness.accept(id, CONTACT, 'and away')
    await until('both receipts', async () => (await harness.network.scenario()).rules[0]!.applied === 2)
    await harness.stop(connection)
    expect((await harness.store.messages.find(id, message))?.state).toBe('sent')
    await harness.network.misbehave({ kind: 'clear' })
    await harness.connect(id)
    await harness.becomes(id, message, 'read')
    expect(await harness.eventsOf(id, message)).toEqual(['message.sent', 'message.delivered', 'message.read'])
  })
})

test('texts of one sender, named sometimes by number and sometimes by LID, are events in the order written', async () => {
  await using world = await openHarness([{ ...INCOMING, probability: 0.5 }, { address: 'pn' }])
  const { harness, id, phone } = world
  await harness.network.misbehave({ kind: 'write', from: CONTACT, to: phone, text: 'text', count: 60 })
  expect(await texts(harness, id, 60)).toEqual(numbered('text', 60))
})

describe.concurrent('a stream of messages at a rate, both ways, with the socket cut in between', () => {
  test('each is one event, each sent one arrives once', async () => {
    await using world = await openHarness([{ direction: 'out', stanza: 'message', nth: 30 }, 'cut'])
    const { harness, id, phone } = world
    const stream = { kind: 'write', from: CONTACT, to: phone, text: 'stream', count: 60, perSecond: 40 } as const
    await harness.network.misbehave(stream)
    const accepted = []
    for (let n = 0; n < 20; n++) accepted.push(await harness.accept(id, '5511987650009', `answer ${n}`))
    expect((await texts(harness, id, 60)).sort()).toEqual(numbered('stream', 60).sort())
    for (const { id: message } of accepted) await harness.becomes(id, message, 'read')
    expect(await harness.network.inbox('5511987650009')).toHaveLength(20)
  })
})

test('messages that a simulated network delivers without encryption are events, once and in their turn', async () => {
  await using world = await openHarness()
  const { harness, id, phone } = world
  const from = `${CONTACT}@s.whatsapp.net`
  const deliver = (whatsappId: string, attrs: Record<string, string>, text: string) => {
    const base64 = Buffer.from(proto.Message.encode({ conversation: text }).finish()).toString('base64')
    const content = [{ tag: 'plaintext', base64 }]
    const stanza = { tag: 'message', attrs: { id: whatsappId, type: 'text', t: '1700000000', ...attrs }, content }
    return harness.network.misbehave({ kind: 'stanza', account: phone, stanza })
  }
  await deliver('P1', { from }, 'to the number')
  await deliver('P1', { from }, 'to the number')
  await harness.network.writeAs({ from: CONTACT, to: phone, text: 'encrypted' })
  await deliver('P2', { from: GROUP, participant: from }, 'to the group')
  expect(await texts(harness, id, 3)).toEqual(['to the number', 'encrypted', 'to the group'])
  const [first, , last] = await harness.received(id)
  expect(first).toMatchObject({ id: 'P1', from: CONTACT, chat: CONTACT, type: 'text' })
  expect(last).toMatchObject({ id: 'P2', from: CONTACT, group: GROUP })
})
