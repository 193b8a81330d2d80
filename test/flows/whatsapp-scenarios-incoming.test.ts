import type { Action, When } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import type { Connection } from '../../src/whatsapp/connection/connection.ts'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

/** What goes wrong with messages to the instance; docs/whatsapp-situations.md lists these. */

const CONTACT = '5511987654321'
const GROUP = '120363000000000777@g.us'
const INCOMING = { stanza: 'message', direction: 'out' } as const
/** What the client says when it has a message. */
const RECEIPT = { stanza: 'receipt', direction: 'in', attrs: { type: '' } } as const
const RECEIPT_UNSEEN = { stanza: 'receipt', direction: 'in', attrs: { type: 'inactive' } } as const
const RETRY = { stanza: 'receipt', direction: 'in', attrs: { type: 'retry' } } as const

async function openStage(...rules: readonly (readonly [When, Action])[]) {
  const stage = await Stage.open()
  const linked = await stage.link()
  await misbehave(stage, ...rules)
  return { ...linked, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

async function misbehave(stage: Stage, ...rules: readonly (readonly [When, Action])[]): Promise<void> {
  for (const [when, action] of rules) await stage.network.misbehave({ kind: 'rule', rule: { when, do: action } })
}

/** The texts of the events, once there are so many of them. */
async function texts(stage: Stage, id: string, count: number): Promise<unknown[]> {
  await until(`${count} events`, async () => (await stage.receivedIds(id)).length >= count)
  const events = await stage.received(id)
  return events.map(({ text }) => text)
}

const numbered = (text: string, count: number) => Array.from({ length: count }, (_, index) => `${text} ${index + 1}`)

describe.concurrent('a message to us', () => {
  test.each<[string, readonly (readonly [When, Action])[]]>([
    ['cut off before it arrives', [[{ ...INCOMING, times: 1 }, 'cut']]],
    ['cut off right behind it', [[{ ...INCOMING, times: 1 }, 'cut_after']]],
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
    await using world = await openStage(...rules)
    const { stage, id, phone } = world
    await stage.network.misbehave({ kind: 'write', from: CONTACT, to: phone, text: 'text', count: 3 })
    expect((await texts(stage, id, 3)).sort()).toEqual(numbered('text', 3))
    await stage.network.misbehave({ kind: 'clear' })
    await stage.network.misbehave({ kind: 'write', from: CONTACT, to: phone, text: 'later', count: 1 })
    expect((await texts(stage, id, 4)).sort()).toEqual(['later 1', ...numbered('text', 3)])
  })

  test('that cannot be decrypted and is not sent again is no event, and delays nothing', async () => {
    await using world = await openStage([{ ...INCOMING, times: 1 }, 'garble'], [RETRY, 'drop'])
    const { stage, id, phone } = world
    await stage.network.writeAs({ from: CONTACT, to: phone, text: 'lost' })
    await stage.network.writeAs({ from: '5511987650000', to: phone, text: 'behind it' })
    expect(await texts(stage, id, 1)).toEqual(['behind it'])
  })

  test('in a group that we cannot decrypt is sent again, and is one event', async () => {
    await using world = await openStage()
    const { stage, id, phone } = world
    await stage.network.joinGroup(GROUP, [CONTACT, phone])
    await misbehave(stage, [{ ...INCOMING, times: 1 }, 'garble'])
    for (const text of ['one', 'two']) await stage.network.writeAs({ from: CONTACT, to: phone, text, group: GROUP })
    expect((await texts(stage, id, 2)).sort()).toEqual(['one', 'two'])
  })

  test('from a contact that has changed its identity is one event', async () => {
    await using world = await openStage()
    const { stage, id, phone } = world
    await stage.network.writeAs({ from: CONTACT, to: phone, text: 'old phone' })
    await texts(stage, id, 1)
    await stage.network.misbehave({ kind: 'change_identity', account: phone, contact: CONTACT })
    await stage.network.writeAs({ from: CONTACT, to: phone, text: 'new phone' })
    expect(await texts(stage, id, 2)).toEqual(['old phone', 'new phone'])
    const { id: answer } = await stage.accept(id, CONTACT, 'to the new phone')
    await stage.becomes(id, answer, 'read')
  })
})

describe.concurrent('a sender', () => {
  test.each<[string, Action, object]>([
    ['LID, with the number beside it', { address: 'lid' }, { from: CONTACT }],
    ['number, with the LID beside it', { address: 'pn' }, { from: CONTACT }],
    ['number alone', { address: 'pn', alternate: false }, { from: CONTACT }],
    ['LID alone, never seen before', { address: 'lid', alternate: false }, { addressing: 'lid' }],
  ])('named by %s', async (_, action, expected) => {
    await using world = await openStage([INCOMING, action])
    const { stage, id, phone } = world
    await stage.network.writeAs({ from: CONTACT, to: phone, text: 'who am I' })
    await texts(stage, id, 1)
    const [event] = await stage.received(id)
    expect(event).toMatchObject(expected)
    if ('from' in expected) expect(event).not.toHaveProperty('addressing')
  })

  test('named by LID alone is reported with its number once WhatsApp has given it, also after a restart', async () => {
    await using world = await openStage()
    const { stage, id, phone, connection } = world
    await stage.network.writeAs({ from: CONTACT, to: phone, text: 'with number' })
    await texts(stage, id, 1)
    await stage.stop(connection)
    await stage.connect(id)
    await misbehave(stage, [INCOMING, { address: 'lid', alternate: false }])
    await stage.network.writeAs({ from: CONTACT, to: phone, text: 'without' })
    await texts(stage, id, 2)
    expect((await stage.received(id))[1]).toMatchObject({ from: CONTACT, text: 'without' })
  })

  test('in a group that is neither a number nor a LID, such as an assistant, is an event that says so', async () => {
    await using world = await openStage()
    const { stage, id, phone } = world
    await stage.network.joinGroup(GROUP, [CONTACT, phone])
    const group = { ...INCOMING, contact: CONTACT }
    await misbehave(
      stage,
      [group, { without: ['participant_pn', 'addressing_mode'] }],
      [group, { set: { participant: '867051314767696@bot' } }],
    )
    await stage.network.writeAs({ from: CONTACT, to: phone, text: 'ask me', group: GROUP })
    expect(await texts(stage, id, 1)).toEqual(['ask me'])
    const [event] = await stage.received(id)
    const sender = { from: '867051314767696', addressing: 'other', phone: null, lid: null }
    expect(event).toMatchObject({ ...sender, group: GROUP, chat: GROUP })
  })

  test('named by LID in a group, without its number', async () => {
    await using world = await openStage([INCOMING, { address: 'lid', alternate: false }])
    const { stage, id, phone } = world
    await stage.network.joinGroup(GROUP, [CONTACT, phone])
    await stage.network.writeAs({ from: CONTACT, to: phone, text: 'who am I', group: GROUP })
    await texts(stage, id, 1)
    expect((await stage.received(id))[0]).toMatchObject({ group: GROUP, addressing: 'lid' })
  })
})

describe.concurrent('a text that the owner writes on the phone', () => {
  test.each<[string, readonly (readonly [When, Action])[]]>([
    ['named by LID', []],
    ['named by number', [[INCOMING, { address: 'pn', alternate: false }]]],
    ['that we cannot decrypt: the phone sends it again', [[{ ...INCOMING, times: 2 }, 'garble']]],
  ])('%s: is neither a message nor an event, and nor are its receipts', async (_, rules) => {
    await using world = await openStage(...rules)
    const { stage, id, phone, connection } = world
    await stage.network.joinGroup(GROUP, [CONTACT, phone])
    await writeOnPhone(stage, phone)
    const [inChat, inGroup] = await stage.network.inbox(CONTACT)
    for (const [message, group] of [
      [inChat!, {}],
      [inGroup!, { group: GROUP }],
    ] as const) {
      for (const type of [{}, { type: 'read' }] as const) {
        const receipt = { account: phone, contact: CONTACT, id: message.id, ...type, ...group }
        await stage.network.misbehave({ kind: 'receipt', ...receipt })
      }
    }
    await expectNothingTold(stage, id, phone, connection)
  })

  test('while the instance was away: the same', async () => {
    await using world = await openStage()
    const { stage, id, phone, connection } = world
    await stage.stop(connection)
    await writeOnPhone(stage, phone)
    await expectNothingTold(stage, id, phone, await stage.connect(id))
  })

  async function writeOnPhone(stage: Stage, account: string): Promise<void> {
    for (const to of [CONTACT, GROUP]) {
      await stage.network.misbehave({ kind: 'write_on_phone', account, to, text: 'my own' })
    }
  }

  /**
   * Applies to later messages of the contact, on this link and on the next one, which starts with the pending messages.
   */
  async function expectNothingTold(stage: Stage, id: string, phone: string, connection: Connection): Promise<void> {
    await stage.network.writeAs({ from: CONTACT, to: phone, text: 'not my own' })
    await texts(stage, id, 1)
    await stage.stop(connection)
    await stage.network.writeAs({ from: CONTACT, to: phone, text: 'nor this' })
    await stage.connect(id)
    expect(await texts(stage, id, 2)).toEqual(['not my own', 'nor this'])
    expect((await stage.store.messages.list(id, { limit: 10 }, {})).data).toEqual([])
    expect((await stage.store.events.list(id, { limit: 10 })).data).toHaveLength(2)
  }
})

describe.concurrent('messages that WhatsApp kept while the instance was away', () => {
  test('hundreds of messages, out of order, some twice, through a cut: each is one event', async () => {
    await using world = await openStage()
    const { stage, id, phone, connection } = world
    await stage.stop(connection)
    await stage.network.misbehave({ kind: 'seed', seed: 7 })
    const contacts = ['5511987650001', '5511987650002', '5511987650003']
    for (const from of contacts) {
      await stage.network.misbehave({ kind: 'write', from, to: phone, text: from, count: 100 })
    }
    await misbehave(
      stage,
      [{ ...INCOMING, probability: 0.2 }, 'double'],
      [
        { ...INCOMING, probability: 0.5 },
        { delayMs: 0, jitterMs: 150 },
      ],
      [{ ...INCOMING, nth: 120 }, 'cut'],
    )
    await stage.connect(id)
    const all = await texts(stage, id, 300)
    expect(all.sort()).toEqual(contacts.flatMap(from => numbered(from, 100)).sort())
    const { id: answer } = await stage.accept(id, contacts[0]!, 'got them')
    await stage.becomes(id, answer, 'read')
    expect(await stage.received(id)).toHaveLength(300)
  })

  test('arrive before later ones', async () => {
    await using world = await openStage()
    const { stage, id, phone, connection } = world
    await stage.stop(connection)
    await stage.network.misbehave({ kind: 'write', from: CONTACT, to: phone, text: 'text', count: 60 })
    await stage.connect(id)
    await until('a first event', async () => (await stage.receivedIds(id)).length > 0)
    for (const text of ['text 61', 'text 62']) await stage.network.writeAs({ from: CONTACT, to: phone, text })
    expect(await texts(stage, id, 62)).toEqual(numbered('text', 62))
  })

  test('receipts for messages sent before', async () => {
    await using world = await openStage([{ stanza: 'receipt', direction: 'out' }, 'drop'])
    const { stage, id, connection } = world
    const { id: message } = await stage.accept(id, CONTACT, 'and away')
    await until('both receipts', async () => (await stage.network.scenario()).rules[0]!.applied === 2)
    await stage.stop(connection)
    expect((await stage.store.messages.find(id, message))?.state).toBe('sent')
    await stage.network.misbehave({ kind: 'clear' })
    await stage.connect(id)
    await stage.becomes(id, message, 'read')
    expect(await stage.eventsOf(id, message)).toEqual(['message.sent', 'message.delivered', 'message.read'])
  })
})

test('texts of one sender, named now by number, now by LID, are events in the order written', async () => {
  await using world = await openStage([{ ...INCOMING, probability: 0.5 }, { address: 'pn' }])
  const { stage, id, phone } = world
  await stage.network.misbehave({ kind: 'write', from: CONTACT, to: phone, text: 'text', count: 60 })
  expect(await texts(stage, id, 60)).toEqual(numbered('text', 60))
})

describe.concurrent('a stream of messages at a rate, both ways, with the socket cut in between', () => {
  test('each is one event, each sent one arrives once', async () => {
    await using world = await openStage([{ direction: 'out', stanza: 'message', nth: 30 }, 'cut'])
    const { stage, id, phone } = world
    const stream = { kind: 'write', from: CONTACT, to: phone, text: 'stream', count: 60, perSecond: 40 } as const
    await stage.network.misbehave(stream)
    const accepted = []
    for (let n = 0; n < 20; n++) accepted.push(await stage.accept(id, '5511987650009', `answer ${n}`))
    expect((await texts(stage, id, 60)).sort()).toEqual(numbered('stream', 60).sort())
    for (const { id: message } of accepted) await stage.becomes(id, message, 'read')
    expect(await stage.network.inbox('5511987650009')).toHaveLength(20)
  })
})
