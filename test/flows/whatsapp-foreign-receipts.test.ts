import { describe, expect, test } from 'vitest'
import { STORES, type StoreKind } from '../database.ts'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

/** Somebody who knows the id of a message that was not sent to him. */

const RECIPIENT = '5511987654321'
const STRANGER = '5511987650000'
const GROUP = '120363000000000777@g.us'
const OTHER_GROUP = '120363000000000888@g.us'

/** A message that WhatsApp has, and whose own receipts never come. */
async function openSent(kind: StoreKind, to: string) {
  const stage = await Stage.open({}, kind)
  const { id, phone } = await stage.link()
  await stage.network.joinGroup(GROUP, [RECIPIENT, phone])
  await stage.network.joinGroup(OTHER_GROUP, [STRANGER, phone])
  const { id: known } = await stage.accept(id, STRANGER, 'to the stranger')
  await stage.becomes(id, known, 'read')
  const mute = { when: { stanza: 'receipt', direction: 'out', contact: RECIPIENT }, do: 'drop' } as const
  const { rule } = await stage.network.misbehave({ kind: 'rule', rule: mute })
  const { id: message, whatsappId } = await stage.accept(id, to, 'secret')
  await stage.becomes(id, message, 'sent')
  const shown = async () => (await stage.network.inbox(RECIPIENT)).some(({ text }) => text === 'secret')
  await until('the message on the phone', shown)
  await stage.network.misbehave({ kind: 'remove_rule', id: rule! })
  /** Resolves when so many receipts were acknowledged. */
  const acknowledged = async (work: () => Promise<unknown>) => {
    const when = { stanza: 'ack', direction: 'in', attrs: { class: 'receipt', id: whatsappId } } as const
    const counting = await stage.network.misbehave({ kind: 'rule', rule: { when, do: { delayMs: 0 } } })
    await work()
    await until('the receipt to be acknowledged', async () => {
      const { rules } = await stage.network.scenario()
      return rules.some(({ id: one, fitted }) => one === counting.rule && fitted > 0)
    })
    await stage.network.misbehave({ kind: 'remove_rule', id: counting.rule! })
  }
  const state = async () => (await stage.store.messages.find(id, message))?.state
  const close = () => stage[Symbol.asyncDispose]()
  return { stage, id, phone, message, whatsappId, acknowledged, state, [Symbol.asyncDispose]: close }
}

describe.each(STORES)('a receipt of somebody else, on %s', kind => {
  test.each(['lid', 'pn'] as const)('named by %s: changes nothing; that of the recipient does', async address => {
    await using world = await openSent(kind, RECIPIENT)
    const { stage, phone, whatsappId, acknowledged, state } = world
    const receipt = { kind: 'receipt', account: phone, id: whatsappId, type: 'read', address } as const
    await acknowledged(() => stage.network.misbehave({ ...receipt, contact: STRANGER }))
    expect(await state()).toBe('sent')
    await stage.network.misbehave({ ...receipt, contact: RECIPIENT })
    await stage.becomes(world.id, world.message, 'read')
  })

  test('in another group changes nothing; one in the group does', async () => {
    await using world = await openSent(kind, GROUP)
    const { stage, phone, whatsappId, acknowledged, state } = world
    const receipt = { kind: 'receipt', account: phone, id: whatsappId, type: 'read' } as const
    await acknowledged(() => stage.network.misbehave({ ...receipt, contact: STRANGER, group: OTHER_GROUP }))
    await acknowledged(() => stage.network.misbehave({ ...receipt, contact: STRANGER }))
    expect(await state()).toBe('sent')
    await stage.network.misbehave({ ...receipt, contact: RECIPIENT, group: GROUP })
    await stage.becomes(world.id, world.message, 'read')
  })
})

describe.each(STORES)('a request of somebody else to send a message again, on %s', kind => {
  test.each([
    ['a message to a contact', RECIPIENT, {}, {}],
    ['a message to a group, outside of it', GROUP, {}, { group: GROUP }],
    ['a message to a group, in another one', GROUP, { group: OTHER_GROUP }, { group: GROUP }],
    ['a message to a group that he is no member of', GROUP, { group: GROUP }, { group: GROUP }],
  ])('%s: is refused; that of the recipient is not', async (_, to, asStranger, asRecipient) => {
    await using world = await openSent(kind, to)
    const { stage, phone, whatsappId, acknowledged } = world
    const ask = { kind: 'ask_again', account: phone, id: whatsappId } as const
    await acknowledged(() => stage.network.misbehave({ ...ask, contact: STRANGER, ...asStranger }))
    const secrets = async (number: string) => (await stage.network.inbox(number)).filter(({ id }) => id === whatsappId)
    await acknowledged(() => stage.network.misbehave({ ...ask, contact: RECIPIENT, ...asRecipient }))
    await until('the message again', async () => (await secrets(RECIPIENT))[0]!.copies > 1)
    expect(await secrets(STRANGER)).toEqual([])
  })
})
