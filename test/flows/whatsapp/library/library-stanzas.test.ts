import { setTimeout as sleep } from 'node:timers/promises'
import type { Rule } from '@pombal/simulator'
import { expect, test } from 'vitest'
import { STORES } from '../../../databases/database.ts'
import { CONDITION_WITHIN_MS, LONG_TEST_WITHIN_MS } from '../../../deadlines.ts'
import { LinkedHarness, type LinkedNumber } from '../../../linked-harness.ts'
import { newSeed, Random } from '../../../rig/random.ts'
import { until } from '../../../until.ts'
import { kindsOfBaileys, malformed, STANZAS } from './hostile-stanzas.ts'

/** Fewer on PostgreSQL, because what a stanza does to the process does not depend on the database. */
const COUNT = { sqlite: 500, postgres: 60 }
/** The limit from sending to reading a text of the unaffected number, or 20 times the usual time of this run. */
const NOTICED_MS = 10_000
/** What else happens to a stanza's connection. */
const FATES = ['nothing', 'nothing', 'error', 'unanswered', 'cut', 'cut late'] as const

test('every kind of stanza that Baileys listens to is among those sent here', () => {
  expect(Object.keys(STANZAS).sort()).toEqual(kindsOfBaileys())
})

test.each(STORES)(
  '%s: no stanza ends the process or affects another number',
  async store => {
    const seed = Number(process.env['STANZA_SEED'] ?? newSeed())
    console.log(`stanzas that are malformed, unanswered and cut: STANZA_SEED=${seed}`)
    const random = new Random(seed)
    await using harness = await LinkedHarness.open(store)
    let victim = await harness.link()
    const other = await harness.link()
    // A stanza may restrict the number: it then writes only to whom it has written before.
    for (const number of [victim, other]) await harness.sendAndRead(number)
    const endsBefore = harness.endsOf(other)
    const { pid } = harness.service

    const noticed: number[] = []
    let over = false
    const others = (async () => {
      while (!over) {
        noticed.push(await harness.sendAndRead(other, { withinMs: CONDITION_WITHIN_MS }))
        // The pace of a caller, not a wait for anything.
        await sleep(100)
      }
    })()
    others.catch(() => undefined)

    const kinds = Object.keys(STANZAS) as [string, ...string[]]
    for (let n = 0; n < COUNT[store]; n++) {
      // Each kind in turn, so none is omitted.
      const kind = kinds[n % kinds.length]!
      const template = random.pick(STANZAS[kind]!)
      const stanza = random.next() < 0.2 ? template : malformed(template, random)
      const fate = random.pick(FATES)
      const rule = ruleFor(fate, victim.phone)
      if (rule) await harness.network.misbehave({ kind: 'rule', rule })
      await harness.network.misbehave({ kind: 'stanza', account: victim.phone, stanza })
      // Real time: a cut, or the next stanza, comes at a random moment of the handling of this one.
      if (fate === 'cut late') await sleep(random.between(0, 20))
      if (fate.startsWith('cut')) await harness.network.misbehave({ kind: 'cut', account: victim.phone })
      else await sleep(random.between(0, 20))
      const told = `stanza ${n} (${fate}): ${JSON.stringify(stanza).slice(0, 500)}\n${harness.service.output.slice(-3_000)}`
      expect(harness.service.url, told).not.toBeNull()
      if (rule) await harness.network.misbehave({ kind: 'clear' })
      victim = await online(harness, victim)
    }
    over = true
    await others
    expect(harness.service.pid).toBe(pid)
    expect(harness.service.boots).toBe(1)
    expect(harness.endsOf(other)).toBe(endsBefore)
    const usual = noticed.toSorted((a, b) => a - b)[Math.floor(noticed.length / 2)]!
    expect(Math.max(...noticed)).toBeLessThan(Math.max(NOTICED_MS, 20 * usual))
    // Over a socket that no query was lost on.
    await harness.network.misbehave({ kind: 'cut', account: victim.phone })
    await harness.sendAndRead(await online(harness, victim), { withinMs: CONDITION_WITHIN_MS })
  },
  LONG_TEST_WITHIN_MS,
)

function ruleFor(fate: (typeof FATES)[number], account: string): Rule | null {
  if (fate === 'error') return { when: { stanza: 'iq', direction: 'in', account }, do: { error: '500' } }
  if (fate === 'unanswered') return { when: { stanza: 'iq', direction: 'in', account }, do: 'drop' }
  return null
}

/** The number, connected again; another one where the phone is said to have removed it. */
async function online(harness: LinkedHarness, number: LinkedNumber): Promise<LinkedNumber> {
  const { admin } = harness.service
  let { phone } = number
  await until('the number to be connected again', async () => {
    const { state, qr } = await admin.connection(number.id)
    if (state === 'connected') return true
    if (qr !== null) phone = (await harness.network.scanQr(qr).catch(() => ({ phone }))).phone
    else if (state !== 'linking' && state !== 'connecting') await admin.connect(number.id)
    return false
  })
  return { ...number, phone }
}
