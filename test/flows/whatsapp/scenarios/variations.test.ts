import type { Action, StanzaText, When } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import type { ConnectionOptions } from '../../../../src/whatsapp/connection/connection.ts'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'

/**
 * Networks that differ from the simulator: they omit, add, delay and reorder details that the driver must not rely on. WhatsApp
 * itself and other people's mock servers differ in such details.
 */

const CONTACT = '5511987654321'
/** Neither delivers nor reads. The test itself sends the receipts of its messages. */
const SILENT = '15005550003'
const GROUP = '120363000000000888@g.us'
const ALL_EVENTS = ['message.sent', 'message.delivered', 'message.read']
const ANSWER = { stanza: 'iq', direction: 'out' } as const
const QUERY = { stanza: 'iq', direction: 'in' } as const
const USYNC = { ...QUERY, attrs: { xmlns: 'usync' } } as const
const INCOMING = { stanza: 'message', direction: 'out' } as const
const MESSAGE_ACK = { stanza: 'ack', direction: 'out', attrs: { class: 'message' } } as const
const DELIVERED = { stanza: 'receipt', direction: 'out', attrs: { type: '' } } as const
const READ = { stanza: 'receipt', direction: 'out', attrs: { type: 'read' } } as const
const TIMINGS = { deliveredAfterMs: 20, readAfterMs: 60 }
const SETTINGS = { messageTtlMs: 86_400_000, queryTimeoutMs: 3_000 }

type Rules = readonly (readonly [When, Action])[]

async function misbehave(harness: WhatsappHarness, rules: Rules): Promise<void> {
  for (const [when, action] of rules) await harness.network.misbehave({ kind: 'rule', rule: { when, do: action } })
}

async function openHarness(rules: Rules = [], settings: ConnectionOptions['settings'] = SETTINGS) {
  const harness = await WhatsappHarness.open({ timings: TIMINGS })
  const linked = await harness.link({ settings })
  await misbehave(harness, rules)
  return { ...linked, harness, [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose]() }
}

async function textsOf(harness: WhatsappHarness, id: string, count: number): Promise<unknown[]> {
  await until(`${count} events`, async () => (await harness.receivedIds(id)).length >= count)
  return (await harness.received(id)).map(({ text }) => text)
}

function message(attrs: Record<string, string>, ...content: StanzaText[]): StanzaText {
  return { tag: 'message', attrs: { t: '1700000000', type: 'text', ...attrs }, content }
}

describe.concurrent('a network', () => {
  test.each<[string, Rules]>([
    [
      'without LIDs',
      [
        [ANSWER, { without: ['lid'] }],
        [{ stanza: 'success' }, { without: ['lid'] }],
        [INCOMING, { address: 'pn', alternate: false }],
      ],
    ],
    ['that does not tell the instance its own LID at login', [[{ stanza: 'success' }, { without: ['lid'] }]]],
    ['whose look-ups do not say who is on WhatsApp', [[ANSWER, { without: ['contact'] }]]],
    ['that lists no devices', [[ANSWER, { without: ['device-list'] }]]],
    ['that says nothing of devices', [[ANSWER, { without: ['devices'] }]]],
    ['that has an error for the devices of the contact', [[ANSWER, { noDevicesOf: CONTACT }]]],
    ['out of one-time keys', [[ANSWER, { without: ['key'] }]]],
    [
      'that says no more than it must',
      [
        [{ stanza: 'ack' }, { without: ['class', 't', 'from'] }],
        [{ stanza: 'receipt', direction: 'out' }, { without: ['t'] }],
        [INCOMING, { without: ['t', 'notify', 'addressing_mode'] }],
        [{ stanza: 'ib' }, 'drop'],
      ],
    ],
    ['that acknowledges a message as it does a receipt', [[MESSAGE_ACK, { set: { class: 'receipt', type: 'text' } }]]],
    ['that reports other devices with every message', [[MESSAGE_ACK, { set: { phash: '2:always' } }]]],
    ['that acknowledges after the receipts', [[MESSAGE_ACK, { delayMs: 300 }]]],
    ['that answers slowly', [[ANSWER, { delayMs: 150 }]]],
    ['that knows nothing of passive clients', [[{ ...QUERY, attrs: { xmlns: 'passive' }, nth: 2 }, { error: '501' }]]],
    ['that has lost our keys', [[{ ...QUERY, attrs: { xmlns: 'encrypt', type: 'get' }, times: 2 }, { error: '404' }]]],
  ])('%s: each sent text is read once and each incoming one reported once, even after a restart', async (_, rules) => {
    await using harness = await WhatsappHarness.open({ timings: TIMINGS })
    await misbehave(harness, rules)
    const { id, phone, connection } = await harness.link({ settings: SETTINGS })
    const sendAndReceive = async (text: string) => {
      const { id: message, whatsappId } = await harness.accept(id, CONTACT, text)
      await harness.network.writeAs({ from: CONTACT, to: phone, text: `answer to ${text}` })
      await harness.becomes(id, message, 'read')
      expect(await harness.eventsOf(id, message)).toEqual(ALL_EVENTS)
      return { id: whatsappId, text, copies: 1 }
    }
    const sent = [await sendAndReceive('one'), await sendAndReceive('two')]
    expect(await textsOf(harness, id, 2)).toEqual(['answer to one', 'answer to two'])
    await harness.stop(connection)
    await harness.connect(id, { settings: SETTINGS })
    sent.push(await sendAndReceive('three'))
    expect(await harness.network.inbox(CONTACT)).toMatchObject(sent)
    expect(await textsOf(harness, id, 3)).toHaveLength(3)
    for (const event of await harness.received(id)) expect(event).toMatchObject({ from: CONTACT, type: 'text' })
  })
})

describe.concurrent('a group', () => {
  test.each<[string, Rules]>([
    ['that does not say how its members are addressed', [[ANSWER, { without: ['addressing_mode'] }]]],
    [
      'whose members have only LIDs, without telling us which is ours',
      [
        [ANSWER, { without: ['phone_number'] }],
        [{ stanza: 'success' }, { without: ['lid'] }],
        [{ ...ANSWER, attrs: { type: 'set' } }, { without: ['lid'] }],
      ],
    ],
  ])('%s: sent texts are read, and incoming ones reported', async (_, rules) => {
    await using harness = await WhatsappHarness.open({ timings: TIMINGS })
    await misbehave(harness, rules)
    const { id, phone } = await harness.link({ settings: SETTINGS })
    await harness.network.joinGroup(GROUP, [CONTACT, phone])
    for (const text of ['one', 'two']) {
      const { id: message } = await harness.accept(id, GROUP, text)
      await harness.becomes(id, message, 'read')
      await harness.network.writeAs({ from: CONTACT, to: phone, text: `answer to ${text}`, group: GROUP })
    }
    expect(await textsOf(harness, id, 2)).toEqual(['answer to one', 'answer to two'])
    for (const event of await harness.received(id)) expect(event).toMatchObject({ from: CONTACT, group: GROUP })
  })
})

test.concurrent('a group gets messages although the devices of one member are an error', async () => {
  await using world = await openHarness([[ANSWER, { noDevicesOf: SILENT }]])
  const { harness, id, phone } = world
  await harness.network.joinGroup(GROUP, [CONTACT, SILENT, phone])
  const { id: message } = await harness.accept(id, GROUP, 'to the others')
  await harness.becomes(id, message, 'sent')
  await until('the message', async () => (await harness.network.inbox(CONTACT)).length === 1)
})

test.concurrent('a group gets messages although the only new device of its members has no keys', async () => {
  await using world = await openHarness()
  const { harness, id, phone } = world
  await harness.network.joinGroup(GROUP, [CONTACT, phone])
  const send = async (text: string) => harness.becomes(id, (await harness.accept(id, GROUP, text)).id, 'read')
  await send('before')
  await misbehave(harness, [[ANSWER, { without: ['identity'] }]])
  await harness.network.misbehave({ kind: 'add_device', account: phone, contact: CONTACT, notify: true })
  for (const text of ['one', 'two']) await send(text)
  expect((await harness.network.inbox(CONTACT)).map(({ text }) => text)).toEqual(['before', 'one', 'two'])
  await harness.network.misbehave({ kind: 'clear' })
})

test.concurrent('the first message to a group waits for the list of devices: no member has to ask for it', async () => {
  await using world = await openHarness()
  const { harness, id, phone } = world
  await harness.network.joinGroup(GROUP, [CONTACT, phone])
  await misbehave(harness, [
    [{ ...USYNC, times: 1 }, 'drop'],
    [{ stanza: 'receipt', direction: 'out', attrs: { type: 'retry' } }, { delayMs: 0 }],
  ])
  await harness.becomes(id, (await harness.accept(id, GROUP, 'one')).id, 'read')
  expect((await harness.network.scenario()).rules).toMatchObject([{ applied: 1 }, { applied: 0 }])
})

describe.concurrent('a look-up', () => {
  test.each<[string, Rules]>([
    ['is not understood', [[{ ...USYNC, nth: 1 }, { error: '501' }]]],
    ['is not answered', [[{ ...USYNC, nth: 1 }, 'drop']]],
    [
      'is answered, but not the first queries of a send',
      [
        [{ ...USYNC, nth: 2 }, 'drop'],
        [{ ...USYNC, nth: 3 }, 'drop'],
      ],
    ],
  ])('that %s: a number with a device is on WhatsApp', async (_, rules) => {
    await using world = await openHarness(rules, { ...SETTINGS, queryTimeoutMs: 1_000 })
    const { harness, id } = world
    const { id: message } = await harness.accept(id, CONTACT, 'x')
    await harness.becomes(id, message, 'read')
    expect(await harness.network.inbox(CONTACT)).toMatchObject([{ copies: 1 }])
  })

  test('that omits the number twice: the number is not on WhatsApp', async () => {
    await using world = await openHarness([[ANSWER, { without: ['user'] }]])
    const { harness, id } = world
    const { id: message } = await harness.accept(id, CONTACT, 'x')
    expect((await harness.becomes(id, message, 'failed')).failure?.code).toBe('recipient_not_on_whatsapp')
  })

  test('without an answer fails no message: the message waits', async () => {
    await using world = await openHarness([[ANSWER, { without: ['usync'] }]])
    const { harness, id } = world
    const { id: message } = await harness.accept(id, CONTACT, 'x')
    await until('a second try', async () => ((await harness.network.scenario()).rules[0]?.applied ?? 0) > 2)
    expect((await harness.store.messages.find(id, message))?.state).toBe('queued')
    await harness.network.misbehave({ kind: 'clear' })
    await harness.becomes(id, message, 'read')
    expect(await harness.network.inbox(CONTACT)).toMatchObject([{ copies: 1 }])
  })
})

describe.concurrent('receipts', () => {
  const from = `${SILENT}@s.whatsapp.net`

  /** Three sent messages without receipts, and a way to send receipts for them. */
  async function openSent(to: string, ...rules: Rules) {
    const world = await openHarness(rules)
    const { harness, id, phone } = world
    if (to === GROUP) await harness.network.joinGroup(GROUP, [SILENT, phone])
    const sent = []
    for (const text of ['one', 'two', 'three']) {
      const message = await harness.accept(id, to, text)
      await harness.becomes(id, message.id, 'sent')
      sent.push(message)
    }
    const tell = (attrs: Record<string, string>, content: readonly StanzaText[] = []) =>
      harness.network.misbehave({ kind: 'stanza', account: phone, stanza: { tag: 'receipt', attrs, content } })
    return { ...world, sent, tell }
  }

  test('for many messages at once', async () => {
    await using world = await openSent(SILENT)
    const { harness, id, sent, tell } = world
    const [first, ...rest] = sent.map(({ whatsappId }) => whatsappId)
    const list = { tag: 'list', content: rest.map(one => ({ tag: 'item', attrs: { id: one } })) }
    await tell({ id: first ?? '', from, type: 'read', t: '1' }, [list])
    for (const { id: message } of sent) {
      await harness.becomes(id, message, 'read')
      expect(await harness.eventsOf(id, message)).toEqual(ALL_EVENTS)
    }
  })

  test('of a group for many members at once count for each message', async () => {
    // The members that the simulator adds would send receipts too.
    await using world = await openSent(GROUP, [DELIVERED, 'drop'], [READ, 'drop'])
    const { harness, id, phone, sent, tell } = world
    const [first, second, third] = sent
    const participants = (key: string | undefined, number: string) => ({
      tag: 'participants',
      attrs: { key: key ?? '' },
      content: [{ tag: 'user', attrs: { jid: `${number}@s.whatsapp.net`, t: '1' } }],
    })
    await tell({ id: 'AGGREGATE', from: GROUP, type: 'played' }, [
      participants(first?.whatsappId, SILENT),
      participants(second?.whatsappId, phone),
      participants(third?.whatsappId, SILENT),
    ])
    for (const one of [first, third]) await harness.becomes(id, one?.id ?? '', 'read')
    expect((await harness.store.messages.find(id, second?.id ?? ''))?.state).toBe('sent')
  })

  test('from a LID that nobody knows count if they name the number', async () => {
    await using world = await openSent(SILENT)
    const { harness, id, sent, tell } = world
    const [{ id: message, whatsappId }] = sent as [(typeof sent)[number]]
    await tell({ id: whatsappId, from: '777000111222333@lid', sender_pn: from, type: 'read' })
    await harness.becomes(id, message, 'read')
  })

  test("of meaningless kinds, or from the instance's own phone, change nothing", async () => {
    await using world = await openSent(SILENT)
    const { harness, id, phone, sent, tell } = world
    const whatsappId = sent[0]?.whatsappId ?? ''
    const own = `${phone}@s.whatsapp.net`
    for (const type of ['server-error', 'peer_msg', 'hist_sync', 'enc_rekey_retry', 'never-heard-of', 'constructor']) {
      await tell({ id: whatsappId, from, type })
    }
    for (const type of ['sender', 'read-self', 'played-self']) await tell({ id: whatsappId, from: own, type })
    await tell({ id: whatsappId, from: own, recipient: from, type: 'read' })
    await tell({ id: sent[2]?.whatsappId ?? '', from, type: 'inactive' })
    await harness.becomes(id, sent[2]?.id ?? '', 'delivered')
    expect((await harness.store.messages.find(id, sent[0]?.id ?? ''))?.state).toBe('sent')
  })
})

describe.concurrent('the network', () => {
  test('refuses a message in words: it fails', async () => {
    await using world = await openHarness([[MESSAGE_ACK, { error: 'not-allowed' }]])
    const { harness, id } = world
    const { id: message } = await harness.accept(id, SILENT, 'x')
    expect((await harness.becomes(id, message, 'failed')).failure?.code).toBe('rejected_by_whatsapp')
  })

  test('sends unrequested stanzas, and leaves later ones unanswered: messages pass in both directions', async () => {
    await using world = await openHarness([[{ ...QUERY, attrs: { xmlns: 'w:sync:app:state' } }, 'drop']])
    const { harness, id, phone } = world
    const contact = `${CONTACT}@s.whatsapp.net`
    const server = 's.whatsapp.net'
    const unasked = [
      {
        tag: 'ib',
        attrs: { from: server },
        content: [{ tag: 'dirty', attrs: { type: 'account_sync', timestamp: '1' } }],
      },
      { tag: 'ib', attrs: { from: server }, content: [{ tag: 'dirty', attrs: { type: 'groups', timestamp: '1' } }] },
      { tag: 'ib', attrs: { from: server }, content: [{ tag: 'offline_preview', attrs: { count: '3' } }] },
      { tag: 'ib', attrs: { from: server }, content: [{ tag: 'thread_metadata' }] },
      {
        tag: 'ib',
        attrs: { from: server },
        content: [{ tag: 'edge_routing', content: [{ tag: 'routing_info', content: 'route' }] }],
      },
      {
        tag: 'notification',
        attrs: { id: 'N1', from: server, type: 'server_sync', t: '1' },
        content: [{ tag: 'collection', attrs: { name: 'regular', version: '1' } }],
      },
      { tag: 'notification', attrs: { id: 'N2', from: contact, type: 'never-heard-of', t: '1' } },
      {
        tag: 'notification',
        attrs: { id: 'N3', from: contact, type: 'devices', t: '1' },
        content: [{ tag: 'update' }],
      },
      { tag: 'presence', attrs: { from: contact, type: 'available' } },
      { tag: 'chatstate', attrs: { from: contact }, content: [{ tag: 'composing' }] },
      {
        tag: 'call',
        attrs: { id: 'C1', from: contact, t: '1' },
        content: [{ tag: 'offer', attrs: { 'call-id': 'c' } }],
      },
      { tag: 'never-heard-of', attrs: { id: 'X1' } },
      { tag: 'ack', attrs: { class: 'message', id: '3EB0FFFFFFFFFFFFFFFFFF', from: contact } },
      { tag: 'iq', attrs: { id: 'P1', from: server, type: 'get', xmlns: 'urn:xmpp:ping' }, content: [{ tag: 'ping' }] },
    ]
    for (const stanza of unasked) await harness.network.misbehave({ kind: 'stanza', account: phone, stanza })
    const { id: message } = await harness.accept(id, CONTACT, 'all the same')
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'hello' })
    await harness.becomes(id, message, 'read')
    expect(await textsOf(harness, id, 1)).toEqual(['hello'])
    await harness.network.misbehave({ kind: 'cut', account: phone })
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'by the route told' })
    expect(await textsOf(harness, id, 2)).toEqual(['hello', 'by the route told'])
  })

  test('delivers stanzas without a message: no event reports them, and nothing waits for them', async () => {
    await using world = await openHarness()
    const { harness, id, phone } = world
    const contact = `${CONTACT}@s.whatsapp.net`
    const garbage = { tag: 'enc', attrs: { v: '2', type: 'never-heard-of' }, content: 'x' }
    const odd = [
      message({ id: 'O1', from: contact }, { tag: 'unavailable', attrs: { type: 'bot_unavailable_fanout' } }),
      message({ id: 'O2', from: contact }, garbage),
      message({ id: 'O3', from: contact }),
      message({ id: 'O4', from: 'status@broadcast', participant: contact }, garbage),
      message({ id: 'O5', from: '120363000000000123@newsletter' }, { tag: 'plaintext', content: 'x' }),
      message({ id: 'O6', from: `${phone}:3@s.whatsapp.net`, recipient: contact }, garbage),
    ]
    for (const stanza of odd) await harness.network.misbehave({ kind: 'stanza', account: phone, stanza })
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'a real one' })
    expect(await textsOf(harness, id, 1)).toEqual(['a real one'])
  })

  test('withholds view-once messages, and delivers them repeatedly: each is one event, in its turn', async () => {
    await using world = await openHarness()
    const { harness, id, phone } = world
    const from = `${CONTACT}@s.whatsapp.net`
    const withheld = (messageId: string, type: string) =>
      message({ id: messageId, from }, { tag: 'unavailable', attrs: { type } })
    const send = (stanza: StanzaText) => harness.network.misbehave({ kind: 'stanza', account: phone, stanza })
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'before' })
    await send(withheld('V1', 'view_once'))
    await send(withheld('V2', 'view_once_unavailable_fanout'))
    await send(withheld('V1', 'view_once'))
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'after' })
    expect(await textsOf(harness, id, 4)).toEqual(['before', undefined, undefined, 'after'])
    const [, first, second] = await harness.received(id)
    expect(first).toMatchObject({ id: 'V1', from: CONTACT, chat: CONTACT, type: 'other', viewOnce: true })
    expect(second).toMatchObject({ id: 'V2', type: 'other', viewOnce: true })
    expect(first).not.toHaveProperty('media')
  })
})

test("a text to the instance's own number is on the phone once", async () => {
  await using harness = await WhatsappHarness.open({ timings: TIMINGS })
  const { id, phone } = await harness.link()
  const { id: message } = await harness.accept(id, phone, 'note to self')
  await harness.becomes(id, message, 'sent')
  expect(await harness.network.inbox(phone)).toMatchObject([{ text: 'note to self', copies: 1 }])
})
