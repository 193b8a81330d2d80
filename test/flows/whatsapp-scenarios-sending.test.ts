import type { Action, When } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

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
async function openStage(...rules: readonly (readonly [When, Action])[]) {
  return openPatientStage(400, ...rules)
}

/** The same; without an acknowledgement a message is sent again only after so long. */
async function openPatientStage(ackTimeoutMs: number, ...rules: readonly (readonly [When, Action])[]) {
  const stage = await Stage.open()
  const linked = await stage.link({ settings: { messageTtlMs: 86_400_000, ackTimeoutMs } })
  for (const [when, action] of rules) await stage.network.misbehave({ kind: 'rule', rule: { when, do: action } })
  return { ...linked, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
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
  ] as const)('%s: one message on the phone, under its id, and each event once', async (_, when, then, mostCopies) => {
    await using world = await openPatientStage(15_000, [when, then])
    const { stage, id } = world
    const { id: message, whatsappId } = await stage.accept(id, CONTACT, 'through a cut')
    await stage.becomes(id, message, 'read')
    const inbox = await stage.network.inbox(CONTACT)
    expect(inbox).toMatchObject([{ id: whatsappId, text: 'through a cut' }])
    expect(inbox[0]?.copies).toBeLessThanOrEqual(mostCopies)
    expect(await stage.eventsOf(id, message)).toEqual(ALL_EVENTS)
  })
})

describe.concurrent('the first message to a group', () => {
  test.each([
    ['is lost with its socket', { stanza: 'message', direction: 'in', times: 1 }, 'cut'],
    ['is lost', { stanza: 'message', direction: 'in', times: 1 }, 'drop'],
  ] as const)(
    '%s, and the key to read it with: it goes out again with that key, and nobody has to ask',
    async (_, when, then) => {
      await using world = await openStage([when, then], ASKING)
      const { stage, id, phone } = world
      await stage.network.joinGroup(GROUP, [CONTACT, phone])
      const messages = [await stage.accept(id, GROUP, 'one'), await stage.accept(id, GROUP, 'two')]
      for (const message of messages) await stage.becomes(id, message.id, 'read')
      const inbox = await stage.network.inbox(CONTACT)
      expect(inbox.map(({ text, copies }) => ({ text, copies }))).toEqual([
        { text: 'one', copies: 1 },
        { text: 'two', copies: 1 },
      ])
      const { rules } = await stage.network.scenario()
      expect(rules[1]?.fitted).toBe(0)
    },
  )

  test('is refused together with its key: the next message carries the key, and no member has to ask', async () => {
    await using world = await openStage([{ stanza: 'message', direction: 'in', times: 1 }, { error: '421' }], ASKING)
    const { stage, id } = world
    const { id: refused } = await stage.accept(id, GROUP, 'one')
    await stage.becomes(id, refused, 'failed')
    const { id: next } = await stage.accept(id, GROUP, 'two')
    await stage.becomes(id, next, 'read')
    const { rules } = await stage.network.scenario()
    expect(rules[1]?.fitted).toBe(0)
  })
})

describe.concurrent('the acknowledgement', () => {
  test('withheld: the message is sent again under its ID, and is delivered once', async () => {
    await using world = await openStage([{ ...MESSAGE_ACK, times: 1 }, 'drop'])
    const { stage, id } = world
    const { id: message, whatsappId } = await stage.accept(id, SILENT, 'nobody answers this')
    await stage.becomes(id, message, 'sent')
    expect(await stage.network.inbox(SILENT)).toMatchObject([{ id: whatsappId, copies: 2 }])
    expect(await stage.eventsOf(id, message)).toEqual(['message.sent'])
  })

  test('withheld, but a receipt comes: that is as good', async () => {
    await using world = await openStage([MESSAGE_ACK, 'drop'])
    const { stage, id } = world
    const { id: message } = await stage.accept(id, CONTACT, 'receipts only')
    await stage.becomes(id, message, 'read')
    expect(await stage.eventsOf(id, message)).toEqual(ALL_EVENTS)
  })

  test('withheld for one recipient: the others are not held up', async () => {
    await using world = await openStage([{ ...MESSAGE_ACK, contact: SILENT }, 'drop'])
    const { stage, id } = world
    const { id: stuck } = await stage.accept(id, SILENT, 'stuck')
    for (let n = 0; n < 5; n++) {
      const { id: message } = await stage.accept(id, CONTACT, `past it ${n}`)
      await stage.becomes(id, message, 'sent')
    }
    expect((await stage.store.messages.find(id, stuck))?.state).toBe('queued')
  })

  test('withheld for one instance: another one is not held up', async () => {
    await using world = await openPatientStage(15_000)
    const { stage, id, phone } = world
    const other = await stage.link()
    const rule = { when: { ...MESSAGE_ACK, account: phone }, do: 'drop' } as const
    await stage.network.misbehave({ kind: 'rule', rule })
    for (let n = 0; n < 5; n++) await stage.accept(id, SILENT, `stuck ${n}`)
    for (let n = 0; n < 5; n++) {
      const { id: message } = await stage.accept(other.id, CONTACT, `past it ${n}`)
      await stage.becomes(other.id, message, 'sent')
    }
    expect(await stage.store.messages.listQueued(id, 10)).toHaveLength(5)
  })

  test.each([
    ['late', { delayMs: 600 }],
    ['doubled', 'double'],
  ] as const)('%s: the message is sent once', async (_, then) => {
    await using world = await openStage([MESSAGE_ACK, then])
    const { stage, id } = world
    const { id: message } = await stage.accept(id, SILENT, 'x')
    await stage.becomes(id, message, 'sent')
    const { id: next } = await stage.accept(id, SILENT, 'y')
    await stage.becomes(id, next, 'sent')
    expect(await stage.eventsOf(id, message)).toEqual(['message.sent'])
    expect((await stage.network.inbox(SILENT)).map(({ text }) => text)).toEqual(['x', 'y'])
  })

  test.each(['463', '421', '500'])(
    'with error %s: the message fails and says so, and is not tried again',
    async error => {
      await using world = await openStage([MESSAGE_ACK, { error }])
      const { stage, id } = world
      const { id: message } = await stage.accept(id, SILENT, 'x')
      const { failure } = await stage.becomes(id, message, 'failed')
      expect(failure).toMatchObject({ code: 'rejected_by_whatsapp', message: expect.stringContaining(error) })
      expect(await stage.eventsOf(id, message)).toEqual(['message.failed'])
      expect(await stage.network.inbox(SILENT)).toMatchObject([{ copies: 1 }])
    },
  )

  test('with error 479: the devices are queried again, and the message is sent again', async () => {
    await using world = await openStage([{ stanza: 'message', direction: 'in', times: 1 }, { error: '479' }])
    const { stage, id } = world
    const { id: message } = await stage.accept(id, CONTACT, 'x')
    await stage.becomes(id, message, 'read')
    expect(await stage.eventsOf(id, message)).toEqual(ALL_EVENTS)
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
    await using world = await openStage(...rules)
    const { stage, id, phone } = world
    const { id: message, whatsappId } = await stage.accept(id, CONTACT, 'x')
    await stage.becomes(id, message, 'read')
    // A receipt for a later message comes after all of the first one's; and then one of these once more.
    await stage.network.misbehave({ kind: 'clear' })
    await stage.network.misbehave({ kind: 'receipt', account: phone, contact: CONTACT, id: whatsappId })
    const { id: last } = await stage.accept(id, CONTACT, 'y')
    await stage.becomes(id, last, 'read')
    expect(await stage.eventsOf(id, message)).toEqual(ALL_EVENTS)
    expect(await stage.eventsOf(id, last)).toEqual(ALL_EVENTS)
  })
})

describe.concurrent('the recipient cannot decrypt', () => {
  test('and asks for a retry: it gets the same text under the same id, and reads it', async () => {
    await using world = await openStage([{ stanza: 'message', direction: 'in', times: 1 }, 'garble'])
    const { stage, id } = world
    const { id: message, whatsappId } = await stage.accept(id, CONTACT, 'at second try')
    await stage.becomes(id, message, 'read')
    expect((await stage.network.scenario()).rules[0]).toMatchObject({ fitted: 2, applied: 1 })
    expect(await stage.network.inbox(CONTACT)).toMatchObject([{ id: whatsappId, text: 'at second try', copies: 1 }])
    expect(await stage.eventsOf(id, message)).toEqual(ALL_EVENTS)
  })

  test('and asks for a retry after a restart: the answer is the stored content', async () => {
    await using stage = await Stage.open()
    const { id, phone, connection } = await stage.link()
    const { id: message, whatsappId } = await stage.accept(id, CONTACT, 'kept for this')
    await stage.becomes(id, message, 'read')
    await stage.stop(connection)
    await stage.connect(id)
    await stage.reaches(id, 'connected')
    await stage.network.misbehave({ kind: 'change_identity', account: phone, contact: CONTACT })
    await stage.network.misbehave({ kind: 'ask_again', account: phone, contact: CONTACT, id: whatsappId })
    const [again] = await until('the second copy', async () => {
      const inbox = await stage.network.inbox(CONTACT)
      return inbox[0]?.copies === 2 && inbox
    })
    expect(again).toMatchObject({ id: whatsappId, text: 'kept for this' })
    expect(await stage.eventsOf(id, message)).toEqual(ALL_EVENTS)
  })

  test('ever: it stays sent, and the next message gets through', async () => {
    await using world = await openStage([{ stanza: 'message', direction: 'in' }, 'garble'])
    const { stage, id } = world
    const { id: message } = await stage.accept(id, CONTACT, 'never read')
    await stage.becomes(id, message, 'sent')
    await until('it to be asked for again', async () => ((await stage.network.scenario()).rules[0]?.applied ?? 0) > 2)
    await stage.network.misbehave({ kind: 'clear' })
    const { id: next } = await stage.accept(id, CONTACT, 'read this time')
    await stage.becomes(id, next, 'read')
  })
})

describe.concurrent('the recipient changes', () => {
  test('its identity: the next message is read', async () => {
    await using stage = await Stage.open()
    const { id, phone } = await stage.link()
    const { id: first } = await stage.accept(id, CONTACT, 'to the old phone')
    await stage.becomes(id, first, 'read')
    await stage.network.misbehave({ kind: 'change_identity', account: phone, contact: CONTACT })
    const { id: second } = await stage.accept(id, CONTACT, 'to the new phone')
    await stage.becomes(id, second, 'read')
    expect((await stage.network.inbox(CONTACT)).map(({ text }) => text)).toEqual([
      'to the old phone',
      'to the new phone',
    ])
  })

  test.each([
    ['says so', true],
    ['reveals it only in the acknowledgement', false],
  ])('its devices, and WhatsApp %s: the new one reads what comes next', async (_, told) => {
    await using stage = await Stage.open()
    const { id, phone } = await stage.link()
    const { id: first } = await stage.accept(id, CONTACT, 'one device')
    await stage.becomes(id, first, 'read')
    await stage.network.misbehave({ kind: 'add_device', account: phone, contact: CONTACT, notify: told })
    await until('the new device to read', async () => {
      const { id: next } = await stage.accept(id, CONTACT, 'two devices')
      await stage.becomes(id, next, 'read')
      return (await stage.network.inbox(CONTACT)).some(({ companions }) => companions?.includes(1))
    })
    expect((await stage.network.inbox(CONTACT)).length).toBeLessThanOrEqual(told ? 3 : 4)
  })
})

describe.concurrent('the look-up', () => {
  test('finds another number (Brazil and its ninth digit): the message goes there', async () => {
    await using stage = await Stage.open()
    const { id } = await stage.link()
    const found = CONTACT.replace('55119', '5511')
    await stage.network.misbehave({ kind: 'look_up', number: CONTACT, finds: found })
    const { id: message } = await stage.accept(id, CONTACT, 'without the nine')
    await stage.becomes(id, message, 'read')
    expect(await stage.network.inbox(found)).toMatchObject([{ text: 'without the nine' }])
    expect(await stage.network.inbox(CONTACT)).toEqual([])
    expect((await stage.store.messages.find(id, message))?.to).toBe(CONTACT)
  })

  test('finds nothing: the message fails, and says that the number is not on WhatsApp', async () => {
    await using stage = await Stage.open()
    const { id } = await stage.link()
    await stage.network.misbehave({ kind: 'look_up', number: CONTACT, finds: null })
    const { id: message } = await stage.accept(id, CONTACT, 'to nobody')
    expect((await stage.becomes(id, message, 'failed')).failure?.code).toBe('recipient_not_on_whatsapp')
  })

  test('is refused: the message is tried again', async () => {
    const query = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' }, times: 1 } as const
    await using world = await openStage([query, { error: '429' }])
    const { stage, id } = world
    const { id: message } = await stage.accept(id, CONTACT, 'at second try')
    await stage.becomes(id, message, 'read')
    expect(await stage.network.inbox(CONTACT)).toMatchObject([{ copies: 1 }])
  })
})
