import { setTimeout as sleep } from 'node:timers/promises'
import type { Rule } from '@pombal/simulator'
import { expect, test } from 'vitest'
import { ONE_STORE } from '../../../databases/one-store.ts'
import { LONG_TEST_WITHIN_MS } from '../../../deadlines.ts'
import { LinkedHarness, type LinkedNumber } from '../../../linked-harness.ts'
import { newSeed, Random } from '../../../rig/random.ts'
import { until } from '../../../until.ts'
import { kindsOfBaileys, malformed, STANZAS } from './hostile-stanzas.ts'

/** Fewer on PostgreSQL, because what a stanza does to the process does not depend on the database. */
const COUNT = { sqlite: 500, postgres: 60 }
/** The numbers that receive stanzas in parallel, because most of the time is a wait for a number to reconnect. */
const VICTIMS = 4
/** The limit from sending to reading a text of the unaffected number, or 20 times the usual time of this run. */
const NOTICED_MS = 10_000
/** The pause between two requests to connect, because each of them starts the login again. */
const ASK_EVERY_MS = 5_000
/** What else happens to a stanza's connection. */
const FATES = ['nothing', 'nothing', 'error', 'unanswered', 'cut', 'cut late'] as const

test('every kind of stanza that Baileys listens to is among those sent here', () => {
  expect(Object.keys(STANZAS).sort()).toEqual(kindsOfBaileys())
})

test.each(ONE_STORE)(
  '%s: no stanza ends the process or affects another number',
  async store => {
    const seed = Number(process.env['STANZA_SEED'] ?? newSeed())
    console.log(`stanzas that are malformed, unanswered and cut: STANZA_SEED=${seed}`)
    const random = new Random(seed)
    await using harness = await LinkedHarness.open(store)
    const victims = await Promise.all(Array.from({ length: VICTIMS }, () => harness.link()))
    const other = await harness.link()
    // A stanza may restrict the number, which can then write only to contacts that it has written to before.
    for (const number of [...victims, other]) await harness.sendAndRead(number)
    const endsBefore = harness.endsOf(other)
    const { pid } = harness.service

    const noticed: number[] = []
    let over = false
    const others = (async () => {
      while (!over) {
        noticed.push(await harness.sendAndRead(other))
        // The pace of a caller, not a wait for anything.
        await sleep(100)
      }
    })()
    others.catch(() => undefined)

    const each = COUNT[store] / VICTIMS
    const share = (victim: LinkedNumber, index: number) =>
      sendStanzas(harness, victim, random.fork(), index * each, each)
    const survivors = await Promise.all(victims.map(share))
    over = true
    await others
    expect(harness.service.pid).toBe(pid)
    expect(harness.service.boots).toBe(1)
    expect(harness.endsOf(other)).toBe(endsBefore)
    const usual = noticed.toSorted((a, b) => a - b)[Math.floor(noticed.length / 2)]!
    expect(Math.max(...noticed)).toBeLessThan(Math.max(NOTICED_MS, 20 * usual))
    // Over new sockets, on which no query was lost.
    for (const victim of survivors) {
      await harness.network.misbehave({ kind: 'cut', account: victim.phone })
      await harness.sendAndRead(await online(harness, victim))
    }
  },
  LONG_TEST_WITHIN_MS,
)

/** Sends the stanzas from number `first` on to the victim, one after another. @returns the victim, connected again */
async function sendStanzas(
  harness: LinkedHarness,
  victim: LinkedNumber,
  random: Random,
  first: number,
  count: number,
): Promise<LinkedNumber> {
  const { misbehave } = harness.network
  const kinds = Object.keys(STANZAS) as [string, ...string[]]
  let number = victim
  for (let n = first; n < first + count; n++) {
    // Each kind in turn, so none is omitted.
    const kind = kinds[n % kinds.length]!
    const template = random.pick(STANZAS[kind]!)
    const stanza = random.next() < 0.2 ? template : malformed(template, random)
    const fate = random.pick(FATES)
    const rule = ruleFor(fate, number.phone)
    const ruleId = rule && (await misbehave({ kind: 'rule', rule })).rule
    await misbehave({ kind: 'stanza', account: number.phone, stanza })
    // Real time: a cut, or the next stanza, comes at a random moment of the handling of this one.
    if (fate === 'cut late') await sleep(random.between(0, 20))
    if (fate.startsWith('cut')) await misbehave({ kind: 'cut', account: number.phone })
    else await sleep(random.between(0, 20))
    if (harness.service.url === null) {
      const said = harness.service.output.slice(-3_000)
      expect.fail(`The service ended at stanza ${n} (${fate}): ${JSON.stringify(stanza).slice(0, 500)}\n${said}`)
    }
    if (ruleId) await misbehave({ kind: 'remove_rule', id: ruleId })
    number = await online(harness, number)
  }
  return number
}

function ruleFor(fate: (typeof FATES)[number], account: string): Rule | null {
  if (fate === 'error') return { when: { stanza: 'iq', direction: 'in', account }, do: { error: '500' } }
  if (fate === 'unanswered') return { when: { stanza: 'iq', direction: 'in', account }, do: 'drop' }
  return null
}

/** Waits until the instance is connected again, with another number if a stanza claimed that the phone removed it. */
async function online(harness: LinkedHarness, number: LinkedNumber): Promise<LinkedNumber> {
  const { admin } = harness.service
  let { phone } = number
  let askedAt = Number.NEGATIVE_INFINITY
  await until('the number to be connected again', async () => {
    const { state, qr } = await admin.connection(number.id)
    if (state === 'connected') return true
    if (qr !== null) phone = (await harness.network.scanQr(qr).catch(() => ({ phone }))).phone
    else if (state !== 'linking' && state !== 'connecting' && performance.now() - askedAt > ASK_EVERY_MS) {
      await admin.connect(number.id)
      askedAt = performance.now()
    }
    return false
  })
  return { ...number, phone }
}
