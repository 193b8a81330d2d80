import { setTimeout as sleep } from 'node:timers/promises'
import type { Rule, StanzaText } from '@pombal/simulator'
import { expect, inject, test } from 'vitest'
import { createDatabase } from '../databases/database.ts'
import { ONE_STORE } from '../databases/one-store.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import {
  chatState,
  dirty,
  groupCall,
  newsletterMessage,
  offlinePreview,
  pairDevice,
} from '../flows/whatsapp/library/failing-stanzas.ts'
import { LoadHarness } from '../rig/harness.ts'
import type { Pace } from '../rig/load.ts'
import { newSeed, Random } from '../rig/random.ts'
import { until } from '../until.ts'
import { endLoad } from './end-load.ts'

const PACE: Pace = { senders: 3, sendEveryMs: [0, 200], writeEveryMs: [100, 400], maxPendingEvents: 30 }
/** The longest time from a moment to its kill. */
const LATER_MS = 60

const STANZAS: readonly [StanzaText, ...StanzaText[]] = [
  newsletterMessage,
  offlinePreview,
  groupCall,
  chatState,
  pairDevice,
  dirty('groups'),
  dirty('communities'),
]

/** The moments of a kill. Each occurs once, in an order that the seed determines. */
const MOMENTS: Record<string, (number: FailingNumber, random: Random) => Promise<unknown>> = {
  'with a stanza': (number, random) => number.send(random.pick(STANZAS)),
  'once the library has failed': number => number.untilNext('whatsapp.library_failed', () => number.send(groupCall)),
  'with a query that is refused': async number => {
    await number.answerQueries({ error: '500' })
    await number.send(dirty('groups'))
  },
  'with a query that is cut off': async number => {
    await number.answerQueries('drop')
    await number.send(dirty('communities'))
    await number.cut()
  },
  'in a login whose queries are refused': async number => {
    await number.answerQueries({ error: '500' })
    await number.untilNext('connection.closed', () => number.cut())
    await until('the login', () => number.isOnline())
    await number.send(dirty('groups'))
  },
}

test.each(ONE_STORE)(
  'on %s, kill -9 while the library fails loses nothing, shows nothing twice, and ends no other connection',
  async store => {
    const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
    console.log(`kills while the library fails, on ${store}: CRASH_SEED=${seed}`)
    const random = new Random(seed)
    const database = await createDatabase(store, inject('postgresUrl'))
    const harness = await LoadHarness.open({ database, instances: 2, seed, load: { pace: PACE } })
    try {
      const { service } = harness
      const failing = new FailingNumber(harness, 0)
      const other = new FailingNumber(harness, 1)
      // So far only the socket that linked the number has ended.
      const endsBefore = other.count('connection.closed')
      harness.startLoad()
      for (const [moment, arrive] of shuffled(Object.entries(MOMENTS), random)) {
        await arrive(failing, random)
        await sleep(random.between(0, LATER_MS))
        // Otherwise the process has ended by itself.
        expect([moment, await service.kill('SIGKILL')]).toEqual([moment, { code: null, signal: 'SIGKILL' }])
        await failing.answerQueries(null)
        await database.expireLeases()
        await service.start()
        await harness.untilConnected()
      }
      const facts = await endLoad(harness)
      expect(facts.accepted.length).toBeGreaterThan(Object.keys(MOMENTS).length)
      expect(other.count('connection.closed')).toBe(endsBefore)
      expect(await service.kill('SIGTERM')).toEqual({ code: 0, signal: null })
    } finally {
      await harness.dispose()
      await database.dispose()
    }
  },
  LONG_TEST_WITHIN_MS,
)

/** A number of the harness, and what WhatsApp does to it. */
class FailingNumber {
  readonly #harness: LoadHarness
  readonly #id: string
  readonly #account: string
  #rule: number | undefined

  constructor(harness: LoadHarness, index: number) {
    const { client, phone } = harness.linkedInstances[index]!
    this.#harness = harness
    this.#id = client.id
    this.#account = phone
  }

  /** How often its log has that line, over all runs of the service. */
  count(msg: string): number {
    const lines = this.#harness.service.wholeLog.split('\n').filter(line => line.includes(`"msg":"${msg}"`))
    return lines.filter(line => line.includes(this.#id)).length
  }

  /** Waits for the next such line, or for the end of the process. */
  async untilNext(msg: string, cause: () => Promise<unknown>): Promise<void> {
    const before = this.count(msg)
    await cause()
    await until(msg, () => this.count(msg) > before || this.#harness.service.url === null)
  }

  async isOnline(): Promise<boolean> {
    const accounts = await this.#harness.network!.accounts()
    return accounts.some(({ phone, online }) => phone === this.#account && online)
  }

  /** Sends the stanza to the number, unless the number is offline. */
  async send(stanza: StanzaText): Promise<void> {
    await this.#harness.network!.misbehave({ kind: 'stanza', account: this.#account, stanza }).catch(() => undefined)
  }

  async cut(): Promise<void> {
    await this.#harness.network!.misbehave({ kind: 'cut', account: this.#account })
  }

  /** @param how WhatsApp treats its answers to queries of the number; null: it sends them */
  async answerQueries(how: Rule['do'] | null): Promise<void> {
    const { network } = this.#harness
    if (this.#rule !== undefined) await network!.misbehave({ kind: 'remove_rule', id: this.#rule })
    if (how === null) return
    const when = { stanza: 'iq', direction: 'out', account: this.#account, attrs: { type: 'result' } } as const
    this.#rule = (await network!.misbehave({ kind: 'rule', rule: { when, do: how } })).rule
  }
}

function shuffled<T>(from: readonly T[], random: Random): T[] {
  return from
    .map(one => ({ one, key: random.next() }))
    .sort((a, b) => a.key - b.key)
    .map(({ one }) => one)
}
