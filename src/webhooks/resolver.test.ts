import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/manual-clock.ts'
import type { Lookup, ResolvedAddress } from './resolver.ts'
import { createResolver, LookupTimedOut } from './resolver.ts'

const HERE: readonly ResolvedAddress[] = [{ address: '192.0.2.1', family: 4 }]

/** Name servers that answer only when told to. */
function setUp(maxInFlight = 2, keptForKnown = 0) {
  const clock = new ManualClock()
  const asked: string[] = []
  const pending = new Map<string, PromiseWithResolvers<readonly ResolvedAddress[]>>()
  const lookup: Lookup = hostname => {
    asked.push(hostname)
    const answer = Promise.withResolvers<readonly ResolvedAddress[]>()
    pending.set(hostname, answer)
    return answer.promise
  }
  const resolve = createResolver({ clock, maxInFlight, keptForKnown, lookup })
  return { clock, asked, pending, resolve }
}

describe('looking names up', () => {
  test('a name has one look-up under way, whoever asks, and its answer serves for 5 s', async () => {
    const { clock, asked, pending, resolve } = setUp()
    const both = [resolve('a.test'), resolve('a.test')]
    await clock.settle()
    pending.get('a.test')?.resolve(HERE)
    expect(await Promise.all(both)).toEqual([HERE, HERE])
    await clock.pass(4_999)
    expect(await resolve('a.test')).toEqual(HERE)
    expect(asked).toEqual(['a.test'])
    await clock.pass(1)
    void resolve('a.test')
    await clock.settle()
    expect(asked).toEqual(['a.test', 'a.test'])
  })

  test('a name server that hangs costs its own callers 5 s and no second thread', async () => {
    const { clock, asked, pending, resolve } = setUp()
    const outcomes: unknown[] = []
    for (let caller = 0; caller < 3; caller += 1) resolve('hangs.test').catch(error => outcomes.push(error))
    await clock.pass(5_000)
    expect(outcomes).toHaveLength(3)
    expect(outcomes.every(error => error instanceof LookupTimedOut)).toBe(true)
    resolve('hangs.test').catch(() => {})
    const other = resolve('fine.test')
    await clock.settle()
    pending.get('fine.test')?.resolve(HERE)
    expect(await other).toEqual(HERE)
    expect(asked).toEqual(['hangs.test', 'fine.test'])
  })

  test('names beyond the threads wait for one, in turn', async () => {
    const { clock, asked, pending, resolve } = setUp(2)
    const all = ['a', 'b', 'c', 'd'].map(name => resolve(name))
    await clock.settle()
    expect(asked).toEqual(['a', 'b'])
    pending.get('b')?.resolve(HERE)
    await clock.settle()
    expect(asked).toEqual(['a', 'b', 'c'])
    for (const name of ['a', 'c']) pending.get(name)?.resolve(HERE)
    await clock.settle()
    pending.get('d')?.resolve(HERE)
    await Promise.all(all)
  })

  test('while the name server is silent, a name that answered before keeps its addresses', async () => {
    const { clock, pending, resolve } = setUp()
    const first = resolve('a.test')
    await clock.settle()
    pending.get('a.test')?.resolve(HERE)
    await first
    await clock.pass(60_000)
    const second = resolve('a.test')
    await clock.pass(500)
    expect(await second).toEqual(HERE)
  })

  test('however many strangers hang, a name that answered before finds a thread', async () => {
    const { clock, asked, pending, resolve } = setUp(4, 1)
    const friend = resolve('friend.test')
    await clock.settle()
    pending.get('friend.test')?.resolve(HERE)
    await friend
    await clock.pass(10_000)
    for (let name = 0; name < 50; name += 1) resolve(`${name}.hangs.test`).catch(() => {})
    const again = resolve('friend.test')
    await clock.settle()
    expect(asked).toEqual(['friend.test', '0.hangs.test', '1.hangs.test', '2.hangs.test', 'friend.test'])
    pending.get('friend.test')?.resolve(HERE)
    expect(await again).toEqual(HERE)
  })

  test('a look-up that everybody has given up on before it had a thread is never made', async () => {
    const { clock, asked, pending, resolve } = setUp(1)
    for (let name = 0; name < 1_000; name += 1) resolve(`${name}.hangs.test`).catch(() => {})
    await clock.pass(5_000)
    const late = resolve('late.test')
    pending.get('0.hangs.test')?.reject(new Error('at last'))
    await clock.settle()
    expect(asked).toEqual(['0.hangs.test', 'late.test'])
    pending.get('late.test')?.resolve(HERE)
    expect(await late).toEqual(HERE)
  })

  test('a failure is told as it is, remembered by nobody, and gives its thread back', async () => {
    const { clock, asked, pending, resolve } = setUp(1)
    const notFound = Object.assign(new Error('not found'), { code: 'ENOTFOUND' })
    for (let time = 0; time < 2; time += 1) {
      const answer = resolve('gone.test')
      await clock.settle()
      pending.get('gone.test')?.reject(notFound)
      await expect(answer).rejects.toBe(notFound)
      await clock.settle()
    }
    expect(asked).toHaveLength(2)
    expect(clock.timers).toBe(0)
  })
})
