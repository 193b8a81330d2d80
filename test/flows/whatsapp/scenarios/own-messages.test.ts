import type { Action, When } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import type { Connection } from '../../../../src/whatsapp/connection/connection.ts'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'

/** What goes wrong with the copies of messages that the owner writes; docs/whatsapp-situations.md lists these. */

const ASSISTANT = '867051314767696@bot'
const CONTACT = '5511987654321'
const GROUP = '120363000000000777@g.us'
const INCOMING = { stanza: 'message', direction: 'out' } as const

async function openHarness(...rules: readonly (readonly [When, Action])[]) {
  const harness = await WhatsappHarness.open()
  const linked = await harness.link()
  await misbehave(harness, ...rules)
  return { ...linked, harness, [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose]() }
}

async function misbehave(harness: WhatsappHarness, ...rules: readonly (readonly [When, Action])[]): Promise<void> {
  for (const [when, action] of rules) await harness.network.misbehave({ kind: 'rule', rule: { when, do: action } })
}

/** Counts the stanzas from now on. */
async function countOf(harness: WhatsappHarness, when: When): Promise<() => Promise<number>> {
  await misbehave(harness, [when, { delayMs: 0 }])
  const { rules } = await harness.network.scenario()
  const rule = rules.at(-1)!.id
  return async () => (await harness.network.scenario()).rules.find(one => one.id === rule)!.applied
}

/** The texts of the events, once there are this many of them. */
async function texts(harness: WhatsappHarness, id: string, count: number): Promise<unknown[]> {
  await until(`${count} events`, async () => (await harness.receivedIds(id)).length >= count)
  const events = await harness.received(id)
  return events.map(({ text }) => text)
}

describe.concurrent('a text that the owner writes on the phone', () => {
  test.each<[string, readonly (readonly [When, Action])[]]>([
    ['named by LID', []],
    ['named by number', [[INCOMING, { address: 'pn', alternate: false }]]],
    ['that we cannot decrypt: the phone sends it again', [[{ ...INCOMING, times: 2 }, 'garble']]],
  ])('%s: is one event, and its receipts are none', async (_, rules) => {
    await using world = await openHarness(...rules)
    const { harness, id, phone, connection } = world
    await harness.network.joinGroup(GROUP, [CONTACT, phone])
    await writeOnPhone(harness, phone)
    const [inChat, inGroup] = await harness.network.inbox(CONTACT)
    for (const [message, group] of [
      [inChat!, {}],
      [inGroup!, { group: GROUP }],
    ] as const) {
      for (const type of [{}, { type: 'read' }] as const) {
        const receipt = { account: phone, contact: CONTACT, id: message.id, ...type, ...group }
        await harness.network.misbehave({ kind: 'receipt', ...receipt })
      }
    }
    await expectToldOnce(harness, id, phone, connection)
  })

  test('while the instance was offline is one event', async () => {
    await using world = await openHarness()
    const { harness, id, phone, connection } = world
    await harness.stop(connection)
    await writeOnPhone(harness, phone)
    await expectToldOnce(harness, id, phone, await harness.connect(id))
  })

  test('to an assistant is one event, in the chat with the assistant', async () => {
    await using world = await openHarness()
    const { harness, id, phone } = world
    await harness.network.misbehave({ kind: 'write_on_phone', account: phone, to: ASSISTANT, text: 'why?' })
    const expected = { to: ASSISTANT, chat: ASSISTANT, phone: null, lid: null, text: 'why?' }
    expect(await written(harness, id)).toMatchObject(expected)
  })

  test('to a LID, in a copy from the number: names the number too', async () => {
    await using world = await openHarness([INCOMING, { without: ['addressing_mode'] }])
    const { harness, id, phone } = world
    await misbehave(harness, [INCOMING, { set: { from: `${phone}@s.whatsapp.net` } }])
    await harness.network.misbehave({ kind: 'write_on_phone', account: phone, to: CONTACT, text: 'my own' })
    expect(await written(harness, id)).toMatchObject({ to: CONTACT, phone: CONTACT })
  })

  test.each<[string, string, Action[]]>([
    ['to a contact named by LID', CONTACT, []],
    ['to a contact named by number alone', CONTACT, [{ address: 'pn', alternate: false }]],
    ['to a contact named by number, with the LIDs', CONTACT, [{ address: 'pn' }]],
    ['to an assistant', ASSISTANT, []],
    ['without content', CONTACT, [{ without: ['enc'] }]],
  ])('%s is not delivered again at the next login', async (_, to, actions) => {
    await using world = await openHarness(...actions.map(action => [{ ...INCOMING, times: 1 }, action] as const))
    const { harness, id, phone, connection } = world
    const sent = await countOf(harness, { stanza: 'receipt', direction: 'in', attrs: { type: 'sender' } })
    await harness.network.misbehave({ kind: 'write_on_phone', account: phone, to, text: 'my own' })
    await until('the receipt', async () => (await sent()) === 1)
    await harness.stop(connection)
    const delivered = await countOf(harness, INCOMING)
    await harness.connect(id)
    // Otherwise the simulator may send the later text over the earlier socket too, which it has not seen end.
    await harness.reaches(id, 'connected')
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'later' })
    await texts(harness, id, 1)
    expect(await delivered()).toBe(1)
  })

  test.each([
    ['view_once', CONTACT, 1],
    ['bot_unavailable_fanout', ASSISTANT, 0],
  ])('whose content WhatsApp withholds as %s gets one receipt', async (type, recipient, events) => {
    await using world = await openHarness()
    const { harness, id, phone } = world
    const sent = await countOf(harness, { stanza: 'receipt', direction: 'in', attrs: { type: 'sender' } })
    const to = recipient === CONTACT ? `${CONTACT}@s.whatsapp.net` : recipient
    const attrs = { id: 'W1', from: `${phone}@s.whatsapp.net`, recipient: to, type: 'text', t: '1700000000' }
    const stanza = { tag: 'message', attrs, content: [{ tag: 'unavailable', attrs: { type } }] }
    await harness.network.misbehave({ kind: 'stanza', account: phone, stanza })
    await until('the receipt', async () => (await sent()) > 0)
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'later' })
    await texts(harness, id, 1)
    expect(await sent()).toBe(1)
    const list = await harness.store.events.list(id, { limit: 10 }, { kind: 'message.written' })
    expect(list.data).toHaveLength(events)
  })

  /** The data of the first `message.written`. */
  async function written(harness: WhatsappHarness, id: string): Promise<unknown> {
    const found = await until('the event', async () => {
      const { data } = await harness.store.events.list(id, { limit: 10 }, { kind: 'message.written' })
      return data[0]
    })
    return JSON.parse((await harness.store.events.find(id, found.id))!.body!).data
  }

  async function writeOnPhone(harness: WhatsappHarness, account: string): Promise<void> {
    for (const to of [CONTACT, GROUP]) {
      await harness.network.misbehave({ kind: 'write_on_phone', account, to, text: 'my own' })
    }
  }

  /**
   * Expects that later messages of the contact are recorded once, as received, on this link and on the next one, which
   * starts with the pending messages.
   */
  async function expectToldOnce(
    harness: WhatsappHarness,
    id: string,
    phone: string,
    connection: Connection,
  ): Promise<void> {
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'not my own' })
    await texts(harness, id, 1)
    await harness.stop(connection)
    await harness.network.writeAs({ from: CONTACT, to: phone, text: 'nor this' })
    await harness.connect(id)
    expect(await texts(harness, id, 2)).toEqual(['not my own', 'nor this'])
    const list = () => harness.store.events.list(id, { limit: 10 }, { kind: 'message.written' })
    await until("the owner's messages", async () => (await list()).data.length >= 2)
    expect((await harness.store.messages.list(id, { limit: 10 }, {})).data).toEqual([])
    const { data } = await harness.store.events.list(id, { limit: 10 })
    const count = (wanted: string) => data.filter(({ kind }) => kind === wanted).length
    expect([count('message.received'), count('message.written')]).toEqual([2, 2])
    expect(data.filter(({ kind }) => kind.startsWith('message.'))).toHaveLength(4)
  }
})
