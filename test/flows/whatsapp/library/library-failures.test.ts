import type { Order, StanzaText } from '@pombal/simulator'
import { describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../../databases/one-store.ts'
import { LinkedHarness, type LinkedNumber } from '../../../linked-harness.ts'
import { until } from '../../../until.ts'
import {
  chatState,
  dirty,
  groupCall,
  groupWithRole,
  newsletterMessage,
  offlinePreview,
  pairDevice,
  receiptOfType,
} from './failing-stanzas.ts'

const QUERIES = { stanza: 'iq', direction: 'in' } as const
const ANSWERS = { stanza: 'iq', direction: 'out' } as const
/** A cut takes effect somewhere in the handling of the previous stanza, so each is tried this often. */
const TRIES = 5

describe.each(ONE_STORE)('%s', store => {
  test('a rejection or an exception in the library ends at most one connection, even around a kill', async () => {
    await using harness = await LinkedHarness.open(store)
    const victim = await harness.link()
    const other = await harness.link()
    await harness.sendAndRead(other)
    const { pid } = harness.service
    const endsBefore = harness.endsOf(other)

    const send = (stanza: StanzaText) =>
      harness.network.misbehave({ kind: 'stanza', account: victim.phone, stanza }).catch(() => undefined)
    const rule = (rule: Extract<Order, { kind: 'rule' }>['rule']) => harness.network.misbehave({ kind: 'rule', rule })
    const cut = () => harness.network.misbehave({ kind: 'cut', account: victim.phone })
    const isBack = async (who: LinkedNumber) => {
      await harness.network.misbehave({ kind: 'clear' })
      await harness.service.admin.connect(who.id)
      await harness.service.admin.untilState(who.id, 'connected')
    }
    const lives = async (what: string) => {
      expect([what, harness.service.url !== null, harness.service.pid]).toEqual([what, true, pid])
      await harness.sendAndRead(other)
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
    expect(harness.endsOf(other)).toBe(endsBefore)
    await harness.sendAndRead(victim)

    await send(groupCall)
    await send(dirty('groups'))
    await harness.kill()
    for (const number of [victim, other]) {
      await harness.service.admin.untilState(number.id, 'connected')
      await harness.sendAndRead(number)
    }
  })

  test('a query after a notification that is never answered ends nothing', async () => {
    await using harness = await LinkedHarness.open(store)
    const victim = await harness.link()
    await harness.network.misbehave({
      kind: 'rule',
      rule: { when: { ...QUERIES, account: victim.phone, attrs: { xmlns: 'w:g2' } }, do: 'drop' },
    })
    for (const type of ['groups', 'communities']) {
      await harness.network.misbehave({ kind: 'stanza', account: victim.phone, stanza: dirty(type) })
    }
    const timedOut = () => harness.service.output.split('timed out waiting for message').length > 2
    await until('the queries to be given up', timedOut)
    await harness.network.misbehave({ kind: 'clear' })
    await harness.sendAndRead(victim)
    expect(harness.service.boots).toBe(1)
  })

  test('receipts and roles that are named like methods of objects change nothing', async () => {
    await using harness = await LinkedHarness.open(store)
    const victim = await harness.link()
    await harness.sendAndRead(victim)
    const endsBefore = harness.endsOf(victim)
    const names = ['constructor', 'toString', '__proto__']
    for (const stanza of names.flatMap(name => [receiptOfType(name), groupWithRole(name)])) {
      await harness.network.misbehave({ kind: 'stanza', account: victim.phone, stanza })
    }
    await harness.sendAndRead(victim)
    expect(harness.endsOf(victim)).toBe(endsBefore)
  })

  test('errors in response to every query at every login cause no crash loop', async () => {
    await using harness = await LinkedHarness.open(store)
    const victim = await harness.link()
    const other = await harness.link()
    await harness.network.misbehave({
      kind: 'rule',
      rule: { when: { ...ANSWERS, account: victim.phone, attrs: { type: 'result' } }, do: { error: '500' } },
    })
    for (let login = 0; login < 5; login++) {
      await harness.network.misbehave({ kind: 'cut', account: victim.phone })
      await harness.service.admin.connect(victim.id)
      await harness.service.admin.untilState(victim.id, 'connected')
      for (const type of ['groups', 'communities', 'account_sync']) {
        await harness.network.misbehave({ kind: 'stanza', account: victim.phone, stanza: dirty(type) })
      }
      await harness.sendAndRead(other)
    }
    await harness.network.misbehave({ kind: 'clear' })
    await harness.sendAndRead(victim)
    expect(harness.service.boots).toBe(1)
  })
})
