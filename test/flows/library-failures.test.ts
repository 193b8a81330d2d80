import type { Order, StanzaText } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import { STORES } from '../database.ts'
import { LinkedHarness, type LinkedNumber } from '../linked-harness.ts'
import { until } from '../until.ts'
import { chatState, dirty, groupCall, newsletterMessage, offlinePreview, pairDevice } from './failing-stanzas.ts'

const QUERIES = { stanza: 'iq', direction: 'in' } as const
const ANSWERS = { stanza: 'iq', direction: 'out' } as const
/** A cut takes effect somewhere in the handling of the previous stanza, so each is tried this often. */
const TRIES = 5

describe.each(STORES)('%s', store => {
  test('a rejection or an exception in the library ends no more than one connection, also around a kill', async () => {
    await using stage = await LinkedHarness.open(store)
    const victim = await stage.link()
    const other = await stage.link()
    await stage.sendAndRead(other)
    const { pid } = stage.service
    const endsBefore = stage.endsOf(other)

    const send = (stanza: StanzaText) =>
      stage.network.misbehave({ kind: 'stanza', account: victim.phone, stanza }).catch(() => undefined)
    const rule = (rule: Extract<Order, { kind: 'rule' }>['rule']) => stage.network.misbehave({ kind: 'rule', rule })
    const cut = () => stage.network.misbehave({ kind: 'cut', account: victim.phone })
    const isBack = async (who: LinkedNumber) => {
      await stage.network.misbehave({ kind: 'clear' })
      await stage.service.admin.connect(who.id)
      await stage.service.admin.untilState(who.id, 'connected')
    }
    const lives = async (what: string) => {
      expect([what, stage.service.url !== null, stage.service.pid]).toEqual([what, true, pid])
      await stage.sendAndRead(other)
    }

    for (const type of ['groups', 'communities', 'account_sync']) {
      for (const xmlns of ['w:g2', 'urn:xmpp:whatsapp:dirty']) {
        const queries = { ...QUERIES, account: victim.phone, attrs: { xmlns } }
        await rule({ when: queries, do: { error: '500' } })
        await send(dirty(type))
        await send(dirty(type))
        await lives(`an error in answer to the query after a notification (${type}, ${xmlns})`)
        await isBack(victim)

        await rule({ when: queries, do: 'drop' })
        await send(dirty(type))
        await cut()
        await lives(`a cut before the answer to the query after a notification (${type}, ${xmlns})`)
        await isBack(victim)
      }
    }
    for (const stanza of [newsletterMessage, offlinePreview, groupCall, chatState, pairDevice]) {
      for (let n = 0; n < TRIES; n++) {
        await send(stanza)
        await cut()
        await isBack(victim)
      }
      await send(stanza)
      await lives(`${stanza.tag} ${JSON.stringify(stanza.content)}`)
      await isBack(victim)
    }
    expect(stage.endsOf(other)).toBe(endsBefore)
    await stage.sendAndRead(victim)

    await send(groupCall)
    await send(dirty('groups'))
    await stage.kill()
    for (const number of [victim, other]) {
      await stage.service.admin.untilState(number.id, 'connected')
      await stage.sendAndRead(number)
    }
  })

  test('a query that is never answered, in answer to a notification, ends nothing', async () => {
    await using stage = await LinkedHarness.open(store)
    const victim = await stage.link()
    await stage.network.misbehave({
      kind: 'rule',
      rule: { when: { ...QUERIES, account: victim.phone, attrs: { xmlns: 'w:g2' } }, do: 'drop' },
    })
    for (const type of ['groups', 'communities']) {
      await stage.network.misbehave({ kind: 'stanza', account: victim.phone, stanza: dirty(type) })
    }
    const timedOut = () => stage.service.output.split('timed out waiting for message').length > 2
    await until('the queries to be given up', timedOut)
    await stage.network.misbehave({ kind: 'clear' })
    await stage.sendAndRead(victim)
    expect(stage.service.boots).toBe(1)
  })

  test('errors in answer to every query at every login are no loop of crashes', async () => {
    await using stage = await LinkedHarness.open(store)
    const victim = await stage.link()
    const other = await stage.link()
    await stage.network.misbehave({
      kind: 'rule',
      rule: { when: { ...ANSWERS, account: victim.phone, attrs: { type: 'result' } }, do: { error: '500' } },
    })
    for (let login = 0; login < 5; login++) {
      await stage.network.misbehave({ kind: 'cut', account: victim.phone })
      await stage.service.admin.connect(victim.id)
      await stage.service.admin.untilState(victim.id, 'connected')
      for (const type of ['groups', 'communities', 'account_sync']) {
        await stage.network.misbehave({ kind: 'stanza', account: victim.phone, stanza: dirty(type) })
      }
      await stage.sendAndRead(other)
    }
    await stage.network.misbehave({ kind: 'clear' })
    await stage.sendAndRead(victim)
    expect(stage.service.boots).toBe(1)
  })
})
