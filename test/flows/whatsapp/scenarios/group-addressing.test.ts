import { describe, expect, test } from 'vitest'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'

const GROUP = '120363000000000777@g.us'
const QUERY = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'w:g2' } } as const
const BY_NUMBER = { stanza: 'message', direction: 'in', attrs: { addressing_mode: 'pn' } } as const

describe.concurrent('WhatsApp changes how a group addresses its members', () => {
  /** A group that WhatsApp has described a moment ago, with its members named by number. Then they are named by LID. */
  async function openChanged() {
    const harness = await WhatsappHarness.open()
    const linked = await harness.link()
    const { id } = linked
    const unnamed = { when: { stanza: 'iq', direction: 'out' }, do: { without: ['addressing_mode'] } } as const
    await harness.network.misbehave({ kind: 'rule', rule: unnamed })
    await harness.becomes(id, (await harness.accept(id, GROUP, 'before')).id, 'read')
    await harness.network.misbehave({ kind: 'clear' })
    await harness.network.misbehave({ kind: 'rule', rule: { when: QUERY, do: { delayMs: 0 } } })
    const queries = async () => (await harness.network.scenario()).rules[0]?.fitted
    /** Another member's. */
    const inbox = async () => {
      const { details } = (await harness.store.directory.readGroup(id, GROUP))!
      const other = details!.members.find(({ phone }) => phone !== linked.phone)!
      return (await harness.network.inbox(other.phone!)).filter(({ group }) => group === GROUP)
    }
    return { ...linked, harness, queries, inbox, [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose]() }
  }

  test('and refuses a message with 421: the group is queried, and every message is delivered once, in order', async () => {
    await using world = await openChanged()
    const { harness, id, queries } = world
    await harness.network.misbehave({ kind: 'rule', rule: { when: BY_NUMBER, do: { error: '421' } } })
    const texts = ['one', 'two', 'three']
    for (const text of texts) await harness.accept(id, GROUP, text)
    const { id: last } = await harness.accept(id, GROUP, 'last')
    await harness.becomes(id, last, 'read')
    expect(await queries()).toBe(1)
    expect((await world.inbox()).map(({ text, copies }) => ({ text, copies }))).toEqual(
      ['before', ...texts, 'last'].map(text => ({ text, copies: 1 })),
    )
  })

  test('but refuses a message with 421 a second time: it fails, after one query', async () => {
    await using world = await openChanged()
    const { harness, id, queries } = world
    const times = { stanza: 'message', direction: 'in', times: 2 } as const
    await harness.network.misbehave({ kind: 'rule', rule: { when: times, do: { error: '421' } } })
    const { id: refused } = await harness.accept(id, GROUP, 'refused')
    const { failure } = await harness.becomes(id, refused, 'failed')
    expect(failure).toMatchObject({ code: 'rejected_by_whatsapp', message: expect.stringContaining('421') })
    expect(await queries()).toBe(1)
    expect(await harness.eventsOf(id, refused)).toEqual(['message.failed'])
    await harness.becomes(id, (await harness.accept(id, GROUP, 'next')).id, 'read')
  })

  test('and Pombal is restarted after the refusal: the message is delivered', async () => {
    await using world = await openChanged()
    const { harness, id, connection } = world
    await harness.network.misbehave({ kind: 'rule', rule: { when: BY_NUMBER, do: { error: '421' } } })
    const { rule } = await harness.network.misbehave({ kind: 'rule', rule: { when: QUERY, do: 'drop' } })
    const { id: message, whatsappId } = await harness.accept(id, GROUP, 'through a restart')
    const fitted = async () => (await harness.network.scenario()).rules.find(one => one.id === rule)?.fitted
    await until('the group to be queried', async () => fitted())
    await harness.stop(connection)
    await harness.network.misbehave({ kind: 'remove_rule', id: rule! })
    await harness.connect(id)
    await harness.becomes(id, message, 'read')
    expect(await harness.eventsOf(id, message)).toEqual(['message.sent', 'message.delivered', 'message.read'])
    expect(await world.inbox()).toContainEqual(expect.objectContaining({ id: whatsappId, copies: 1 }))
  })
})
