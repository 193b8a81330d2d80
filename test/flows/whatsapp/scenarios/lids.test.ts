import type { Action, When } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../../databases/one-store.ts'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'

/** Numbers that change their owner, and people whose LID changes. */

const NUMBER = '5511987654321'
/** Another person, who gets the number. */
const NEW_OWNER = '5511977770000'

const lidOf = (number: string) => `${999_999_999_999_999 - Number(number)}@lid`
const messagesOf = (number: string): When => ({ stanza: 'message', direction: 'out', attrs: { from: lidOf(number) } })

async function setRule(harness: WhatsappHarness, when: When, action: Action): Promise<number> {
  return (await harness.network.misbehave({ kind: 'rule', rule: { when, do: action } })).rule!
}

async function receives(harness: WhatsappHarness, id: string, from: string, to: string, text: string) {
  await harness.network.writeAs({ from, to, text })
  return until(`an event for ${text}`, async () => (await harness.received(id)).find(event => event['text'] === text))
}

describe.each(ONE_STORE)('a number that WhatsApp has given to another person, on %s', kind => {
  test.each([
    ['', false],
    [' and that was written to by LID before', true],
  ])('names only the new owner; the former one is known by LID, even after a restart%s', async (_, wasLookedUp) => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, phone, connection } = await harness.link()
    const former = lidOf(NUMBER)
    expect(await receives(harness, id, NUMBER, phone, 'with the number')).toMatchObject({ from: NUMBER, lid: former })
    if (wasLookedUp) await harness.becomes(id, (await harness.accept(id, former, 'one')).id, 'sent')
    await setRule(harness, messagesOf(NEW_OWNER), { set: { sender_pn: `${NUMBER}@s.whatsapp.net` } })
    const fromOwner = await receives(harness, id, NEW_OWNER, phone, 'the new owner')
    expect(fromOwner).toMatchObject({ from: NUMBER, chat: NUMBER, lid: lidOf(NEW_OWNER) })
    await setRule(harness, messagesOf(NUMBER), { address: 'lid', alternate: false })
    const byLid = { addressing: 'lid', chat: former, lid: former, phone: null }
    expect(await receives(harness, id, NUMBER, phone, 'without the number')).toMatchObject(byLid)
    await harness.stop(connection)
    await harness.connect(id)
    await harness.reaches(id, 'connected')
    expect(await receives(harness, id, NUMBER, phone, 'after a restart')).toMatchObject(byLid)
    const { id: message, whatsappId } = await harness.accept(id, former, 'for the former owner only')
    await harness.becomes(id, message, 'read')
    expect((await harness.store.messages.findSent(id, whatsappId))?.address).toBe(former)
  })
})

describe.each(ONE_STORE)("a copy from the owner's phone that names the owner's other address, on %s", kind => {
  test.each<[string, Action[]]>([
    ['number', []],
    ['LID', [{ address: 'pn' }]],
  ])(
    "its %s: the contact's reply is an event, and a message to the contact's LID reaches the contact",
    async (_, more) => {
      await using harness = await WhatsappHarness.open({}, kind)
      const { id, phone } = await harness.link()
      for (const action of more) await setRule(harness, messagesOf(phone), action)
      const bothNames = { sender_pn: `${phone}@s.whatsapp.net`, sender_lid: lidOf(phone) }
      const copies = { stanza: 'message', direction: 'out', contact: phone } as const
      await setRule(harness, copies, { set: bothNames })
      await harness.network.writeAsOwner({ phone, to: NUMBER, text: 'written on the phone' })
      const written = await until('the copy', async () => {
        return (await harness.store.events.list(id, { limit: 1 }, { kind: 'message.written' })).data[0]
      })
      const { data } = JSON.parse((await harness.store.events.find(id, written.id))!.body)
      expect(data).toMatchObject({ lid: lidOf(NUMBER), chat: expect.not.stringMatching(phone) })
      await setRule(harness, messagesOf(NUMBER), { address: 'lid', alternate: false })
      expect(await receives(harness, id, NUMBER, phone, 'the answer')).toMatchObject({ lid: lidOf(NUMBER) })
      await harness.becomes(id, (await harness.accept(id, lidOf(NUMBER), 'for the contact')).id, 'read')
      expect((await harness.network.inbox(NUMBER)).map(({ text }) => text)).toContain('for the contact')
    },
  )
})

/** The contact has this LID from now on, and sends receipts from it. */
const NEW_LID = '777000111222333'
const RECEIPTS = { stanza: 'receipt', direction: 'out' } as const
/** The client's query for the LID of a number. */
const LID_QUERY = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' } } as const

describe.each(ONE_STORE)('a contact that sets up WhatsApp again and gets another LID, on %s', kind => {
  async function openSetUpAgain(more: readonly (readonly [When, Action])[] = []) {
    const harness = await WhatsappHarness.open({}, kind)
    const { id, phone } = await harness.link()
    await harness.becomes(id, (await harness.accept(id, NUMBER, 'to the old phone')).id, 'read')
    await receives(harness, id, NUMBER, phone, 'from the old phone')
    await setRule(harness, RECEIPTS, { address: 'lid', alternate: false })
    await setRule(harness, {}, { lid: NEW_LID, number: NUMBER })
    for (const [when, action] of more) await setRule(harness, when, action)
    await harness.network.misbehave({ kind: 'change_identity', account: phone, contact: NUMBER })
    return { harness, id, phone, [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose]() }
  }
  const notifications = { stanza: 'notification', direction: 'out', attrs: { type: 'encrypt' } } as const

  test.each<[string, (readonly [When, Action])[]]>([
    ['says so', []],
    ['does not say so', [[notifications, 'drop']]],
  ])('and WhatsApp %s: reads the next messages', async (_, rules) => {
    await using world = await openSetUpAgain(rules)
    const { harness, id } = world
    for (const text of ['one', 'two']) {
      await harness.becomes(id, (await harness.accept(id, NUMBER, text)).id, 'read')
    }
    expect((await harness.network.inbox(NUMBER)).map(({ text }) => text)).toEqual(['to the old phone', 'one', 'two'])
  })

  test('and WhatsApp says so in an acknowledgement: reads the next message without a retry', async () => {
    const ack = { stanza: 'ack', direction: 'out', attrs: { class: 'message' } } as const
    await using world = await openSetUpAgain([
      [notifications, 'drop'],
      [{ ...RECEIPTS, attrs: { type: 'retry' } }, 'drop'],
      [ack, { set: { refresh_lid: 'true' } }],
    ])
    const { harness, id } = world
    const queries = await setRule(harness, LID_QUERY, { delayMs: 0 })
    await harness.becomes(id, (await harness.accept(id, NUMBER, 'lost')).id, 'sent')
    await until('the query for the LID', async () => (await fitted(harness, queries)) > 0)
    await until('a message to be read', async () => {
      const { id: next } = await harness.accept(id, NUMBER, 'next')
      await harness.becomes(id, next, 'sent')
      return harness.becomes(id, next, 'read', 2_000).catch(() => null)
    })
  })

  test("a stranger's LID obtains no copy, however often it asks, and causes one query", async () => {
    await using harness = await WhatsappHarness.open({}, kind)
    const { id, phone } = await harness.link()
    const { id: message, whatsappId } = await harness.accept(id, NUMBER, 'secret')
    await harness.becomes(id, message, 'read')
    const queries = await setRule(harness, LID_QUERY, { delayMs: 0 })
    const refused = () => harness.log.filter(line => line.includes('receipt.foreign_retry_refused')).length
    for (let asked = 1; asked <= 5; asked++) {
      const request = { account: phone, contact: NEW_OWNER, id: whatsappId } as const
      await harness.network.misbehave({ kind: 'ask_again', ...request })
      await until('the refusal', () => refused() === asked)
    }
    expect(await fitted(harness, queries)).toBe(1)
    expect((await harness.network.inbox(NEW_OWNER)).filter(({ id }) => id === whatsappId)).toEqual([])
    expect(refused()).toBe(5)
  })
})

async function fitted(harness: WhatsappHarness, rule: number): Promise<number> {
  return (await harness.network.scenario()).rules.find(({ id }) => id === rule)?.fitted ?? 0
}
