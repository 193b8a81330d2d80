import { describe, expect, test } from 'vitest'
import { STORES, type StoreKind } from '../../databases/database.ts'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

/** A contact who knows the ID of a message to somebody else. */

const RECIPIENT = '5511987654321'
const STRANGER = '5511987650000'
const GROUP = '120363000000000777@g.us'
const OTHER_GROUP = '120363000000000888@g.us'

/** A message that WhatsApp has, and whose own receipts never come. */
async function openSent(kind: StoreKind, to: string) {
  const harness = await WhatsappHarness.open({}, kind)
  const { id, phone } = await harness.link()
  await harness.network.joinGroup(GROUP, [RECIPIENT, phone])
  await harness.network.joinGroup(OTHER_GROUP, [STRANGER, phone])
  const { id: known } = await harness.accept(id, STRANGER, 'to the stranger')
  await harness.becomes(id, known, 'read')
  const mute = { when: { stanza: 'receipt', direction: 'out', contact: RECIPIENT }, do: 'drop' } as const
  const { rule } = await harness.network.misbehave({ kind: 'rule', rule: mute })
  const { id: message, whatsappId } = await harness.accept(id, to, 'secret')
  await harness.becomes(id, message, 'sent')
  const shown = async () => (await harness.network.inbox(RECIPIENT)).some(({ text }) => text === 'secret')
  await until('the message on the phone', shown)
  await harness.network.misbehave({ kind: 'remove_rule', id: rule! })
  /** Resolves when this many receipts were acknowledged. */
  const acknowledged = async (work: () => Promise<unknown>) => {
    const when = { stanza: 'ack', direction: 'in', attrs: { class: 'receipt', id: whatsappId } } as const
    const counting = await harness.network.misbehave({ kind: 'rule', rule: { when, do: { delayMs: 0 } } })
    await work()
    await until('the receipt to be acknowledged', async () => {
      const { rules } = await harness.network.scenario()
      return rules.some(({ id: one, fitted }) => one === counting.rule && fitted > 0)
    })
    await harness.network.misbehave({ kind: 'remove_rule', id: counting.rule! })
  }
  const state = async () => (await harness.store.messages.find(id, message))?.state
  const close = () => harness[Symbol.asyncDispose]()
  return { harness, id, phone, message, whatsappId, acknowledged, state, [Symbol.asyncDispose]: close }
}

describe.each(STORES)('a receipt of somebody else, on %s', kind => {
  test.each(['lid', 'pn'] as const)("named by %s changes nothing; the recipient's does", async address => {
    await using world = await openSent(kind, RECIPIENT)
    const { harness, phone, whatsappId, acknowledged, state } = world
    const receipt = { kind: 'receipt', account: phone, id: whatsappId, type: 'read', address } as const
    await acknowledged(() => harness.network.misbehave({ ...receipt, contact: STRANGER }))
    expect(await state()).toBe('sent')
    await harness.network.misbehave({ ...receipt, contact: RECIPIENT })
    await harness.becomes(world.id, world.message, 'read')
  })

  test('from a member of another group changes nothing; one from a member of the group does', async () => {
    await using world = await openSent(kind, GROUP)
    const { harness, phone, whatsappId, acknowledged, state } = world
    const receipt = { kind: 'receipt', account: phone, id: whatsappId, type: 'read' } as const
    await acknowledged(() => harness.network.misbehave({ ...receipt, contact: STRANGER, group: OTHER_GROUP }))
    await acknowledged(() => harness.network.misbehave({ ...receipt, contact: STRANGER }))
    expect(await state()).toBe('sent')
    await harness.network.misbehave({ ...receipt, contact: RECIPIENT, group: GROUP })
    await harness.becomes(world.id, world.message, 'read')
  })
})

describe.each(STORES)('a request by somebody else to send a message again, on %s', kind => {
  test.each([
    ['a message to a contact', RECIPIENT, {}, {}],
    ['a message to a group, outside of it', GROUP, {}, { group: GROUP }],
    ['a message to a group, in another one', GROUP, { group: OTHER_GROUP }, { group: GROUP }],
    ['a message to a group that he is no member of', GROUP, { group: GROUP }, { group: GROUP }],
  ])("%s is refused; the recipient's is not", async (_, to, asStranger, asRecipient) => {
    await using world = await openSent(kind, to)
    const { harness, phone, whatsappId, acknowledged } = world
    const ask = { kind: 'ask_again', account: phone, id: whatsappId } as const
    await acknowledged(() => harness.network.misbehave({ ...ask, contact: STRANGER, ...asStranger }))
    const secrets = async (number: string) =>
      (await harness.network.inbox(number)).filter(({ id }) => id === whatsappId)
    await acknowledged(() => harness.network.misbehave({ ...ask, contact: RECIPIENT, ...asRecipient }))
    await until('the message again', async () => (await secrets(RECIPIENT))[0]!.copies > 1)
    expect(await secrets(STRANGER)).toEqual([])
  })
})
