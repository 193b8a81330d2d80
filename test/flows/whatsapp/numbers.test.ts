import type { Action, When } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

/** Which numbers and groups are looked up, and how often; docs/whatsapp-situations.md lists them. */

const CONTACT = '5511987654321'
const NOBODY = '15005550001'
const GROUP = '120363000000000777@g.us'
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const QUERY = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' } } as const

/** A linked instance whose clock can be moved forward, and a count of its number queries. */
async function openHarness() {
  const harness = await WhatsappHarness.open()
  let aheadMs = 0
  const options = { settings: { messageTtlMs: 30 * DAY_MS }, now: () => Date.now() + aheadMs }
  const linked = await harness.link(options)
  const misbehave = async (when: When, action: Action) => {
    const { rule } = await harness.network.misbehave({ kind: 'rule', rule: { when, do: action } })
    return rule
  }
  const counting = await misbehave(QUERY, { delayMs: 0 })
  return {
    ...linked,
    harness,
    options,
    misbehave,
    putForward(ms: number) {
      aheadMs += ms
    },
    async queries() {
      const { rules } = await harness.network.scenario()
      return rules.find(({ id }) => id === counting)?.fitted ?? 0
    },
    async send(to: string, reached: 'read' | 'failed') {
      const { id } = await harness.accept(linked.id, to, `to ${to}`)
      return harness.becomes(linked.id, id, reached)
    },
    [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose](),
  }
}

describe.concurrent('a new recipient', () => {
  test('is looked up once, however many messages wait, and not again after a restart or for six days', async () => {
    await using world = await openHarness()
    const { harness, id, connection } = world
    const messages = await Promise.all(Array.from({ length: 5 }, (_, n) => harness.accept(id, CONTACT, `letter ${n}`)))
    for (const message of messages) await harness.becomes(id, message.id, 'read')
    // The number's address, and its devices.
    expect(await world.queries()).toBe(2)
    await harness.stop(connection)
    await harness.connect(id, world.options)
    world.putForward(6 * DAY_MS)
    await world.send(CONTACT, 'read')
    expect(await world.queries()).toBe(2)
  })

  test('is looked up again after seven days, and messages go to its new address', async () => {
    await using world = await openHarness()
    const { harness } = world
    await world.send(CONTACT, 'read')
    const found = CONTACT.replace('55119', '5511')
    await harness.network.misbehave({ kind: 'look_up', number: CONTACT, finds: found })
    world.putForward(7 * DAY_MS)
    await world.send(CONTACT, 'read')
    expect(await harness.network.inbox(found)).toHaveLength(1)
  })

  test('that was not found is looked up again after an hour, and not before', async () => {
    await using world = await openHarness()
    const { harness } = world
    for (let n = 0; n < 3; n++) {
      expect((await world.send(NOBODY, 'failed')).failure?.code).toBe('recipient_not_on_whatsapp')
    }
    expect(await world.queries()).toBe(1)
    await harness.network.misbehave({ kind: 'look_up', number: NOBODY, finds: CONTACT })
    world.putForward(HOUR_MS)
    await world.send(NOBODY, 'read')
    expect(await harness.network.inbox(CONTACT)).toHaveLength(1)
  })

  test('that was not found is looked up again as soon as the person has written', async () => {
    await using world = await openHarness()
    const { harness, id, phone } = world
    expect((await world.send(NOBODY, 'failed')).failure?.code).toBe('recipient_not_on_whatsapp')
    await harness.network.misbehave({ kind: 'look_up', number: NOBODY, finds: CONTACT })
    await harness.network.writeAs({ from: NOBODY, to: phone, text: 'I am here now' })
    await until('the message', async () => (await harness.received(id)).length === 1)
    await world.send(NOBODY, 'read')
    expect(await world.queries()).toBe(3)
  })
})

describe.concurrent('a group', () => {
  test('that the instance has left since fails with not_a_group_member, and is queried again after an hour', async () => {
    await using world = await openHarness()
    const { harness, misbehave } = world
    await world.send(GROUP, 'read')
    world.putForward(HOUR_MS)
    await misbehave({ stanza: 'message', direction: 'in', times: 1 }, { error: '403' })
    await misbehave({ stanza: 'iq', direction: 'in', attrs: { xmlns: 'w:g2' } }, { error: '403' })
    for (let n = 0; n < 2; n++) {
      expect((await world.send(GROUP, 'failed')).failure?.code).toBe('not_a_group_member')
    }
    await harness.network.misbehave({ kind: 'clear' })
    expect((await world.send(GROUP, 'failed')).failure?.code).toBe('not_a_group_member')
    world.putForward(HOUR_MS)
    await world.send(GROUP, 'read')
  })

  test("that refuses a member's message fails it as rejected_by_whatsapp", async () => {
    await using world = await openHarness()
    await world.send(GROUP, 'read')
    await world.misbehave({ stanza: 'message', direction: 'in', times: 1 }, { error: '403' })
    const { failure } = await world.send(GROUP, 'failed')
    expect(failure).toMatchObject({ code: 'rejected_by_whatsapp', message: expect.stringContaining('403') })
  })
})

test('numbers that a group member names as authors of deleted messages are not looked up', async () => {
  await using world = await openHarness()
  const { harness, id, phone } = world
  await harness.network.joinGroup(GROUP, [CONTACT, phone])
  const write = (message: object) =>
    harness.network.writeAs({ from: CONTACT, to: phone, group: GROUP, ...message } as Parameters<
      typeof harness.network.writeAs
    >[0])
  const arrives = (text: string) =>
    until(text, async () => (await harness.received(id)).some(event => event['text'] === text))
  await write({ text: 'before' })
  await arrives('before')
  const before = await world.queries()
  for (const author of ['5511977770001', '5511977770002:3', '0_1', 'x', '5'.repeat(100_000)]) {
    const key = { remoteJid: GROUP, fromMe: false, id: 'ABSENT', participant: `${author}@s.whatsapp.net` }
    await write({ content: { protocolMessage: { key, type: 'REVOKE' } } })
  }
  await write({ text: 'after' })
  await arrives('after')
  expect(await world.queries()).toBe(before)
})
