import { describe, expect, test } from 'vitest'
import type { StoreKind } from '../../databases/database.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

/** A contact knows the ID of a message to somebody else, and sends receipts and retry requests for it. */

const RECIPIENT = '5511987654321'
const STRANGER = '5511987650000'
const OTHER_GROUP = '120363000000000888@g.us'

/** Sends a message to the recipient, or to a group with only the recipient. The recipient's own receipts are lost. */
async function openSent(kind: StoreKind, to: 'contact' | 'group') {
  const harness = await WhatsappHarness.open({}, kind)
  const { id, phone } = await harness.link()
  const { group } = await harness.network.createGroup(RECIPIENT, 'Ours', [phone])
  await harness.network.joinGroup(OTHER_GROUP, [STRANGER, phone])
  const { id: known } = await harness.accept(id, STRANGER, 'to the stranger')
  await harness.becomes(id, known, 'read')
  const mute = { when: { stanza: 'receipt', direction: 'out', contact: RECIPIENT }, do: 'drop' } as const
  const { rule } = await harness.network.misbehave({ kind: 'rule', rule: mute })
  const { id: message, whatsappId } = await harness.accept(id, to === 'group' ? group : RECIPIENT, 'secret')
  await harness.becomes(id, message, 'sent')
  const countFitted = async (one: number) =>
    (await harness.network.scenario()).rules.find(({ id }) => id === one)?.fitted ?? 0
  // The receipts for "delivered" and "read".
  await until('both receipts to be dropped', async () => (await countFitted(rule!)) === 2)
  await harness.network.misbehave({ kind: 'remove_rule', id: rule! })
  /** Resolves when the instance has acknowledged a receipt that `work` causes. */
  const acknowledged = async (work: () => Promise<unknown>) => {
    const when = { stanza: 'ack', direction: 'in', attrs: { class: 'receipt', id: whatsappId } } as const
    const counting = await harness.network.misbehave({ kind: 'rule', rule: { when, do: { delayMs: 0 } } })
    await work()
    await until('the receipt to be acknowledged', async () => (await countFitted(counting.rule!)) > 0)
    await harness.network.misbehave({ kind: 'remove_rule', id: counting.rule! })
  }
  const state = async () => (await harness.store.messages.find(id, message))?.state
  const close = () => harness[Symbol.asyncDispose]()
  return { harness, id, phone, group, message, whatsappId, acknowledged, state, [Symbol.asyncDispose]: close }
}

describe.each(ONE_STORE)('a receipt of somebody else, on %s', kind => {
  test.each(['lid', 'pn'] as const)("named by %s changes nothing; the recipient's does", async address => {
    await using world = await openSent(kind, 'contact')
    const { harness, phone, whatsappId, acknowledged, state } = world
    const receipt = { kind: 'receipt', account: phone, id: whatsappId, type: 'read', address } as const
    await acknowledged(() => harness.network.misbehave({ ...receipt, contact: STRANGER }))
    expect(await state()).toBe('sent')
    await harness.network.misbehave({ ...receipt, contact: RECIPIENT })
    await harness.becomes(world.id, world.message, 'read')
  })

  test('from a member of another group changes nothing; one from a member of the group does', async () => {
    await using world = await openSent(kind, 'group')
    const { harness, phone, group, whatsappId, acknowledged, state } = world
    const receipt = { kind: 'receipt', account: phone, id: whatsappId, type: 'read' } as const
    await acknowledged(() => harness.network.misbehave({ ...receipt, contact: STRANGER, group: OTHER_GROUP }))
    await acknowledged(() => harness.network.misbehave({ ...receipt, contact: STRANGER }))
    expect(await state()).toBe('sent')
    await harness.network.misbehave({ ...receipt, contact: RECIPIENT, group })
    await harness.becomes(world.id, world.message, 'read')
  })
})

describe.each(ONE_STORE)('a request by somebody else to send a message again, on %s', kind => {
  test.each([
    ['a message to a contact', 'contact', null],
    ['a message to a group, outside of it', 'group', null],
    ['a message to a group, in another one', 'group', 'another'],
    ['a message to a group that the contact is not a member of', 'group', 'the same'],
  ] as const)("%s is refused; the recipient's is not", async (_, to, asked) => {
    await using world = await openSent(kind, to)
    const { harness, phone, group, whatsappId, acknowledged } = world
    const within = { another: { group: OTHER_GROUP }, 'the same': { group } }
    const ask = { kind: 'ask_again', account: phone, id: whatsappId } as const
    await acknowledged(() => harness.network.misbehave({ ...ask, contact: STRANGER, ...(asked && within[asked]) }))
    const secrets = async (number: string) =>
      (await harness.network.inbox(number)).filter(({ id }) => id === whatsappId)
    await acknowledged(() =>
      harness.network.misbehave({ ...ask, contact: RECIPIENT, ...(to === 'group' && { group }) }),
    )
    await until('the message again', async () => (await secrets(RECIPIENT))[0]!.copies > 1)
    expect(await secrets(STRANGER)).toEqual([])
  })
})
