import type { Action, When } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'

/** What WhatsApp does wrong while the instance sends; docs/whatsapp-situations.md lists these. */

const CONTACT = '5511987654321'
/** Neither delivers nor reads. Only the acknowledgement shows that a message arrived. */
const SILENT = '15005550003'
const GROUP = '120363000000000777@g.us'
const ALL_EVENTS = ['message.sent', 'message.delivered', 'message.read']
const MESSAGE_ACK = { stanza: 'ack', direction: 'out', attrs: { class: 'message' } } as const
const DELIVERED = { stanza: 'receipt', direction: 'out', attrs: { type: '' } } as const
/** Counts how often a phone asks for a message that it cannot read. */
const ASKING = [{ stanza: 'receipt', direction: 'out', attrs: { type: 'retry' } }, { delayMs: 0 }] as const
const RECEIPT = { stanza: 'receipt', direction: 'out' } as const

/** A linked instance, and a network that from then on misbehaves by these rules. */
async function openHarness(...rules: readonly (readonly [When, Action])[]) {
  return openWithAckTimeout(10_000, ...rules)
}

/** Opens a linked instance that resends an unacknowledged message only after this time. */
async function openWithAckTimeout(ackTimeoutMs: number, ...rules: readonly (readonly [When, Action])[]) {
  const harness = await WhatsappHarness.open()
  const linked = await harness.link({ settings: { messageTtlMs: 86_400_000, ackTimeoutMs } })
  for (const [when, action] of rules) await harness.network.misbehave({ kind: 'rule', rule: { when, do: action } })
  return { ...linked, harness, [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose]() }
}

describe.concurrent('the socket is cut', () => {
  test.each([
    ['before WhatsApp has seen the message', { stanza: 'message', direction: 'in', times: 1 }, 'cut', 1],
    ['after it has, before the acknowledgement', { ...MESSAGE_ACK, times: 1 }, 'cut', 2],
    ['right after the acknowledgement', { ...MESSAGE_ACK, times: 1 }, 'cut_after', 1],
    [
      'while the recipient is looked up',
      { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' }, times: 1 },
      'cut',
      1,
    ],
    ['while its keys are fetched', { stanza: 'iq', direction: 'out', contact: CONTACT, times: 1 }, 'cut', 1],
    ['with a receipt on the way', { ...RECEIPT, times: 1 }, 'cut', 1],
  ] as const)(
    '%s: the phone shows one message under its ID, and each event is reported once',
    async (_, when, then, mostCopies) => {
      await using world = await openWithAckTimeout(15_000, [when, then])
      const { harness, id } = world
      const { id: message, whatsappId } = await harness.accept(id, CONTACT, 'through a cut')
      await harness.becomes(id, message, 'read')
      const inbox = await harness.network.inbox(CONTACT)
      expect(inbox).toMatchObject([{ id: whatsappId, text: 'through a cut' }])
      expect(inbox[0]?.copies).toBeLessThanOrEqual(mostCopies)
      expect(await harness.eventsOf(id, message)).toEqual(ALL_EVENTS)
    },
  )
})

describe.concurrent('the first message to a group', () => {
  test.each([
    ['is lost with its socket', { stanza: 'message', direction: 'in', times: 1 }, 'cut'],
    ['is lost', { stanza: 'message', direction: 'in', times: 1 }, 'drop'],
  ] as const)(
    '%s with its key: it is sent again with that key, and no member has to request it',
    async (_, when, then) => {
      await using world = await openHarness([when, then], ASKING)
      const { harness, id, phone } = world
      await harness.network.joinGroup(GROUP, [CONTACT, phone])
      const messages = [await harness.accept(id, GROUP, 'one'), await harness.accept(id, GROUP, 'two')]
      for (const message of messages) await harness.becomes(id, message.id, 'read')
      const inbox = await harness.network.inbox(CONTACT)
      expect(inbox.map(({ text, copies }) => ({ text, copies }))).toEqual([
        { text: 'one', copies: 1 },
        { text: 'two', copies: 1 },
      ])
      const { rules } = await harness.network.scenario()
      expect(rules[1]?.fitted).toBe(0)
    },
  )

  test('is refused together with its key: the next message carries the key, and no member has to request it', async () => {
    await using world = await openHarness([{ stanza: 'message', direction: 'in', times: 1 }, { error: '500' }], ASKING)
    const { harness, id } = world
    const { id: refused } = await harness.accept(id, GROUP, 'one')
    await harness.becomes(id, refused, 'failed')
    const { id: next } = await harness.accept(id, GROUP, 'two')
    await harness.becomes(id, next, 'read')
    const { rules } = await harness.network.scenario()
    expect(rules[1]?.fitted).toBe(0)
  })
})

describe.concurrent('the acknowledgement', () => {
  test('withheld: the message is sent again under its ID, and is delivered once', async () => {
    await using world = await openHarness([{ ...MESSAGE_ACK, times: 1 }, 'drop'])
    const { harness, id } = world
    const { id: message, whatsappId } = await harness.accept(id, SILENT, 'nobody answers this')
    await harness.becomes(id, message, 'sent')
    expect(await harness.network.inbox(SILENT)).toMatchObject([{ id: whatsappId, copies: 2 }])
    expect(await harness.eventsOf(id, message)).toEqual(['message.sent'])
  })

  test('withheld, but a receipt comes: the message is sent', async () => {
    await using world = await openHarness([MESSAGE_ACK, 'drop'])
    const { harness, id } = world
    const { id: message } = await harness.accept(id, CONTACT, 'receipts only')
    await harness.becomes(id, message, 'read')
    expect(await harness.eventsOf(id, message)).toEqual(ALL_EVENTS)
  })

  test('withheld for one recipient: the others do not wait', async () => {
    await using world = await openHarness([{ ...MESSAGE_ACK, contact: SILENT }, 'drop'])
    const { harness, id } = world
    const { id: stuck } = await harness.accept(id, SILENT, 'stuck')
    for (let n = 0; n < 5; n++) {
      const { id: message } = await harness.accept(id, CONTACT, `past it ${n}`)
      await harness.becomes(id, message, 'sent')
    }
    expect((await harness.store.messages.find(id, stuck))?.state).toBe('queued')
  })

  test('withheld for one instance: another one does not wait', async () => {
    await using world = await openWithAckTimeout(15_000)
    const { harness, id, phone } = world
    const other = await harness.link()
    const rule = { when: { ...MESSAGE_ACK, account: phone }, do: 'drop' } as const
    await harness.network.misbehave({ kind: 'rule', rule })
    for (let n = 0; n < 5; n++) await harness.accept(id, SILENT, `stuck ${n}`)
    for (let n = 0; n < 5; n++) {
      const { id: message } = await harness.accept(other.id, CONTACT, `past it ${n}`)
      await harness.becomes(other.id, message, 'sent')
    }
    expect(await harness.store.messages.listQueued(id, 10)).toHaveLength(5)
  })

  test.each([
    ['late', { delayMs: 600 }],
    ['doubled', 'double'],
  ] as const)('%s: the message is sent once', async (_, then) => {
    await using world = await openHarness([MESSAGE_ACK, then])
    const { harness, id } = world
    const { id: message } = await harness.accept(id, SILENT, 'x')
    await harness.becomes(id, message, 'sent')
    const { id: next } = await harness.accept(id, SILENT, 'y')
    await harness.becomes(id, next, 'sent')
    expect(await harness.eventsOf(id, message)).toEqual(['message.sent'])
    expect((await harness.network.inbox(SILENT)).map(({ text }) => text)).toEqual(['x', 'y'])
  })

  test.each(['463', '421', '500'])(
    'with error %s: the message fails with the code, and is not retried',
    async error => {
      await using world = await openWithAckTimeout(15_000, [MESSAGE_ACK, { error }])
      const { harness, id } = world
      const { id: message } = await harness.accept(id, SILENT, 'x')
      const { failure } = await harness.becomes(id, message, 'failed')
      expect(failure).toMatchObject({ code: 'rejected_by_whatsapp', message: expect.stringContaining(error) })
      expect(await harness.eventsOf(id, message)).toEqual(['message.failed'])
      expect(await harness.network.inbox(SILENT)).toMatchObject([{ copies: 1 }])
    },
  )

  test.each([
    ['a person', CONTACT],
    ['a group', GROUP],
  ])('to %s with error 479: the devices are queried again, and the message is sent again', async (_, to) => {
    await using world = await openHarness()
    const { harness, id } = world
    await harness.becomes(id, (await harness.accept(id, to, 'before')).id, 'read')
    const refusal = { when: { stanza: 'message', direction: 'in', times: 1 }, do: { error: '479' } } as const
    const query = { when: { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' } }, do: { delayMs: 0 } } as const
    for (const rule of [refusal, query]) await harness.network.misbehave({ kind: 'rule', rule })
    const { id: message } = await harness.accept(id, to, 'x')
    await harness.becomes(id, message, 'read')
    expect(await harness.eventsOf(id, message)).toEqual(ALL_EVENTS)
    expect((await harness.network.scenario()).rules[1]!.fitted).toBe(1)
  })
})

describe.concurrent('receipts', () => {
  test.each<[string, [When, Action][]]>([
    ['late', [[RECEIPT, { delayMs: 500 }]]],
    ['doubled', [[RECEIPT, 'double']]],
    ['out of order: read, then delivered', [[DELIVERED, { delayMs: 900 }]]],
    ['read without delivered', [[DELIVERED, 'drop']]],
    ['named by LID', [[RECEIPT, { address: 'lid', alternate: false }]]],
    ['named by number', [[RECEIPT, { address: 'pn', alternate: false }]]],
    [
      'all over the place',
      [
        [RECEIPT, 'double'],
        [RECEIPT, { delayMs: 0, jitterMs: 900 }],
      ],
    ],
  ])('%s: sent, delivered, read, each once', async (_, rules) => {
    await using world = await openHarness(...rules)
    const { harness, id, phone } = world
    const { id: message, whatsappId } = await harness.accept(id, CONTACT, 'x')
    await harness.becomes(id, message, 'read')
    // The first message's receipt is repeated. The receipts of a later message show that all earlier ones have arrived.
    await harness.network.misbehave({ kind: 'clear' })
    await harness.network.misbehave({ kind: 'receipt', account: phone, contact: CONTACT, id: whatsappId })
    const { id: last } = await harness.accept(id, CONTACT, 'y')
    await harness.becomes(id, last, 'read')
    expect(await harness.eventsOf(id, message)).toEqual(ALL_EVENTS)
    expect(await harness.eventsOf(id, last)).toEqual(ALL_EVENTS)
  })
})

describe.concurrent('the recipient cannot decrypt', () => {
  test('and asks for a retry: it gets the same text under the same ID, and reads it', async () => {
    await using world = await openHarness([{ stanza: 'message', direction: 'in', times: 1 }, 'garble'])
    const { harness, id } = world
    const { id: message, whatsappId } = await harness.accept(id, CONTACT, 'at second try')
    await harness.becomes(id, message, 'read')
    expect((await harness.network.scenario()).rules[0]).toMatchObject({ fitted: 2, applied: 1 })
    expect(await harness.network.inbox(CONTACT)).toMatchObject([{ id: whatsappId, text: 'at second try', copies: 1 }])
    expect(await harness.eventsOf(id, message)).toEqual(ALL_EVENTS)
  })

  test('and asks for a retry, on a network that lists no devices: it reads the text', async () => {
    await using world = await openHarness([{ stanza: 'message', direction: 'in', times: 1 }, 'garble'])
    const { harness, id } = world
    const rule = { when: { stanza: 'iq', direction: 'out' }, do: { without: ['device-list'] } } as const
    await harness.network.misbehave({ kind: 'rule', rule })
    const { id: message } = await harness.accept(id, CONTACT, 'to the phone')
    await harness.becomes(id, message, 'read')
  })

  test('and asks for a retry after a restart: it gets the stored content', async () => {
    await using harness = await WhatsappHarness.open()
    const { id, phone, connection } = await harness.link()
    const { id: message, whatsappId } = await harness.accept(id, CONTACT, 'kept for this')
    await harness.becomes(id, message, 'read')
    await harness.stop(connection)
    await harness.connect(id)
    await harness.reaches(id, 'connected')
    await harness.network.misbehave({ kind: 'change_identity', account: phone, contact: CONTACT })
    await harness.network.misbehave({ kind: 'ask_again', account: phone, contact: CONTACT, id: whatsappId })
    const [again] = await until('the second copy', async () => {
      const inbox = await harness.network.inbox(CONTACT)
      return inbox[0]?.copies === 2 && inbox
    })
    expect(again).toMatchObject({ id: whatsappId, text: 'kept for this' })
    expect(await harness.eventsOf(id, message)).toEqual(ALL_EVENTS)
  })

  test('and asks for a retry, which WhatsApp refuses: the message stays sent, although an earlier attempt failed', async () => {
    const keys = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'encrypt', type: 'get' }, times: 2 } as const
    await using world = await openHarness([keys, { error: '404' }])
    const { harness, id, phone } = world
    const { id: message, whatsappId } = await harness.accept(id, SILENT, 'x')
    await harness.becomes(id, message, 'sent')
    expect((await harness.network.scenario()).rules[0]!.applied).toBe(2)
    const copy = { when: { stanza: 'message', direction: 'in', times: 1 }, do: { error: '500' } } as const
    await harness.network.misbehave({ kind: 'rule', rule: copy })
    await harness.network.misbehave({ kind: 'ask_again', account: phone, contact: SILENT, id: whatsappId })
    await until('the refusal', async () => (await harness.network.scenario()).rules[1]!.applied === 1)
    await harness.becomes(id, (await harness.accept(id, SILENT, 'y')).id, 'sent')
    expect((await harness.store.messages.find(id, message))?.state).toBe('sent')
  })

  test('not even the retries: the message stays sent, and the next one arrives', async () => {
    await using world = await openHarness([{ stanza: 'message', direction: 'in' }, 'garble'])
    const { harness, id } = world
    const { id: message } = await harness.accept(id, CONTACT, 'never read')
    await harness.becomes(id, message, 'sent')
    await until('it to be asked for again', async () => ((await harness.network.scenario()).rules[0]?.applied ?? 0) > 2)
    await harness.network.misbehave({ kind: 'clear' })
    const { id: next } = await harness.accept(id, CONTACT, 'read this time')
    await harness.becomes(id, next, 'read')
  })
})

describe.concurrent('the recipient changes', () => {
  test('its identity: the next message is read', async () => {
    await using harness = await WhatsappHarness.open()
    const { id, phone } = await harness.link()
    const { id: first } = await harness.accept(id, CONTACT, 'to the old phone')
    await harness.becomes(id, first, 'read')
    await harness.network.misbehave({ kind: 'change_identity', account: phone, contact: CONTACT })
    const { id: second } = await harness.accept(id, CONTACT, 'to the new phone')
    await harness.becomes(id, second, 'read')
    expect((await harness.network.inbox(CONTACT)).map(({ text }) => text)).toEqual([
      'to the old phone',
      'to the new phone',
    ])
  })

  test.each([
    ['says so', true],
    ['reveals it only in the acknowledgement', false],
  ])('its devices, and WhatsApp %s: the new device reads the next message', async (_, told) => {
    await using harness = await WhatsappHarness.open()
    const { id, phone } = await harness.link()
    const { id: first } = await harness.accept(id, CONTACT, 'one device')
    await harness.becomes(id, first, 'read')
    await harness.network.misbehave({ kind: 'add_device', account: phone, contact: CONTACT, notify: told })
    await until('the new device to read', async () => {
      const { id: next } = await harness.accept(id, CONTACT, 'two devices')
      await harness.becomes(id, next, 'read')
      return (await harness.network.inbox(CONTACT)).some(({ companions }) => companions?.includes(1))
    })
    expect((await harness.network.inbox(CONTACT)).length).toBeLessThanOrEqual(told ? 3 : 4)
  })
})

describe.concurrent('the look-up', () => {
  test('finds another number (Brazil and its ninth digit): the message goes there', async () => {
    await using harness = await WhatsappHarness.open()
    const { id } = await harness.link()
    const found = CONTACT.replace('55119', '5511')
    await harness.network.misbehave({ kind: 'look_up', number: CONTACT, finds: found })
    const { id: message } = await harness.accept(id, CONTACT, 'without the nine')
    await harness.becomes(id, message, 'read')
    expect(await harness.network.inbox(found)).toMatchObject([{ text: 'without the nine' }])
    expect(await harness.network.inbox(CONTACT)).toEqual([])
    expect((await harness.store.messages.find(id, message))?.to).toBe(CONTACT)
  })

  test('is not answered at first: the message still goes to the number that it finds', async () => {
    const query = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' }, times: 1 } as const
    await using harness = await WhatsappHarness.open()
    const { id } = await harness.link({ settings: { messageTtlMs: 86_400_000, queryTimeoutMs: 500 } })
    const found = CONTACT.replace('55119', '5511')
    await harness.network.misbehave({ kind: 'look_up', number: CONTACT, finds: found })
    await harness.network.misbehave({ kind: 'rule', rule: { when: query, do: 'drop' } })
    const { id: message } = await harness.accept(id, CONTACT, 'without the nine, later')
    await harness.becomes(id, message, 'read')
    expect(await harness.network.inbox(found)).toMatchObject([{ text: 'without the nine, later' }])
    expect(await harness.network.inbox(CONTACT)).toEqual([])
  })

  test('finds nothing: the message fails with recipient_not_on_whatsapp', async () => {
    await using harness = await WhatsappHarness.open()
    const { id } = await harness.link()
    await harness.network.misbehave({ kind: 'look_up', number: CONTACT, finds: null })
    const { id: message } = await harness.accept(id, CONTACT, 'to nobody')
    expect((await harness.becomes(id, message, 'failed')).failure?.code).toBe('recipient_not_on_whatsapp')
  })

  test('is refused: the look-up is repeated, and the message is sent', async () => {
    const query = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' }, times: 1 } as const
    await using world = await openWithAckTimeout(15_000, [query, { error: '429' }])
    const { harness, id } = world
    const { id: message } = await harness.accept(id, CONTACT, 'at second try')
    await harness.becomes(id, message, 'read')
    expect(await harness.network.inbox(CONTACT)).toMatchObject([{ copies: 1 }])
  })
})
