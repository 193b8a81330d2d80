import type { Action, When } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import { Stage } from './whatsapp-stage.ts'

/** Whom WhatsApp is asked for, and how often; docs/whatsapp-situations.md lists these. */

const CONTACT = '5511987654321'
const NOBODY = '15005550001'
const GROUP = '120363000000000777@g.us'
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const QUERY = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' } } as const

/** A linked instance whose clock can be moved forward, and a count of its number queries. */
async function openStage() {
  const stage = await Stage.open()
  let aheadMs = 0
  const options = { settings: { messageTtlMs: 30 * DAY_MS }, now: () => Date.now() + aheadMs }
  const linked = await stage.link(options)
  const misbehave = async (when: When, action: Action) => {
    const { rule } = await stage.network.misbehave({ kind: 'rule', rule: { when, do: action } })
    return rule
  }
  const counting = await misbehave(QUERY, { delayMs: 0 })
  return {
    ...linked,
    stage,
    options,
    misbehave,
    putForward(ms: number) {
      aheadMs += ms
    },
    async queries() {
      const { rules } = await stage.network.scenario()
      return rules.find(({ id }) => id === counting)?.fitted ?? 0
    },
    async send(to: string, reached: 'read' | 'failed') {
      const { id } = await stage.accept(linked.id, to, `to ${to}`)
      return stage.becomes(linked.id, id, reached)
    },
    [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose](),
  }
}

describe.concurrent('a new recipient', () => {
  test('is looked up once, however many messages wait, and not again after a restart or for six days', async () => {
    await using world = await openStage()
    const { stage, id, connection } = world
    const messages = await Promise.all(Array.from({ length: 5 }, (_, n) => stage.accept(id, CONTACT, `text ${n}`)))
    for (const message of messages) await stage.becomes(id, message.id, 'read')
    // The number's address, and its devices.
    expect(await world.queries()).toBe(2)
    await stage.stop(connection)
    await stage.connect(id, world.options)
    world.putForward(6 * DAY_MS)
    await world.send(CONTACT, 'read')
    expect(await world.queries()).toBe(2)
  })

  test('is looked up again after seven days, and written to where it is now', async () => {
    await using world = await openStage()
    const { stage } = world
    await world.send(CONTACT, 'read')
    const found = CONTACT.replace('55119', '5511')
    await stage.network.misbehave({ kind: 'look_up', number: CONTACT, finds: found })
    world.putForward(7 * DAY_MS)
    await world.send(CONTACT, 'read')
    expect(await stage.network.inbox(found)).toHaveLength(1)
  })

  test('that was not found is not asked for again for an hour, and then it is', async () => {
    await using world = await openStage()
    const { stage } = world
    for (let n = 0; n < 3; n++) {
      expect((await world.send(NOBODY, 'failed')).failure?.code).toBe('recipient_not_on_whatsapp')
    }
    expect(await world.queries()).toBe(1)
    await stage.network.misbehave({ kind: 'look_up', number: NOBODY, finds: CONTACT })
    world.putForward(HOUR_MS)
    await world.send(NOBODY, 'read')
    expect(await stage.network.inbox(CONTACT)).toHaveLength(1)
  })
})

describe.concurrent('a group', () => {
  test('that the instance has left since fails with the code of that, and is asked for again next time', async () => {
    await using world = await openStage()
    const { stage, misbehave } = world
    await world.send(GROUP, 'read')
    await misbehave({ stanza: 'message', direction: 'in', times: 1 }, { error: '403' })
    await misbehave({ stanza: 'iq', direction: 'in', attrs: { xmlns: 'w:g2' } }, { error: '403' })
    for (let n = 0; n < 2; n++) {
      expect((await world.send(GROUP, 'failed')).failure?.code).toBe('not_a_group_member')
    }
    await stage.network.misbehave({ kind: 'clear' })
    await world.send(GROUP, 'read')
  })

  test('that refuses the message of a member: WhatsApp refused it', async () => {
    await using world = await openStage()
    await world.send(GROUP, 'read')
    await world.misbehave({ stanza: 'message', direction: 'in', times: 1 }, { error: '403' })
    const { failure } = await world.send(GROUP, 'failed')
    expect(failure).toMatchObject({ code: 'rejected_by_whatsapp', message: expect.stringContaining('403') })
  })
})
