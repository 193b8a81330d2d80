import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/manual-clock.ts'
import { AttemptFailed } from './attempt-error.ts'
import type { Lookup, ResolvedAddress } from './resolver.ts'
import { Resolver } from './resolver.ts'

const HERE: readonly ResolvedAddress[] = [{ address: '192.0.2.1', family: 4 }]

/** Name servers that answer only when the test resolves their promise. */
function setUp(
  options: { maxInFlight?: number; reservedForKnown?: number; maxPerOwner?: number } = {
    maxInFlight: 2,
    reservedForKnown: 0,
  },
) {
  const clock = new ManualClock()
  const asked: string[] = []
  const pending = new Map<string, PromiseWithResolvers<readonly ResolvedAddress[]>>()
  const lookup: Lookup = hostname => {
    asked.push(hostname)
    const answer = Promise.withResolvers<readonly ResolvedAddress[]>()
    pending.set(hostname, answer)
    return answer.promise
  }
  const resolver = new Resolver({ clock, lookup, ...options })
  return { clock, asked, pending, resolve: (hostname: string, owner?: string) => resolver.resolve(hostname, owner) }
}

describe('the resolver', () => {
  test('a name has one look-up at a time, and its result is used for 5 s', async () => {
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

  test('a name server that hangs delays only its own callers, by 5 s, and occupies one thread', async () => {
    const { clock, asked, pending, resolve } = setUp()
    const outcomes: unknown[] = []
    for (let caller = 0; caller < 3; caller += 1) resolve('hangs.test').catch(error => outcomes.push(error))
    await clock.pass(5_000)
    expect(outcomes).toHaveLength(3)
    expect(outcomes.every(error => error instanceof AttemptFailed && error.reason === 'dns_failed')).toBe(true)
    resolve('hangs.test').catch(() => {})
    const other = resolve('fine.test')
    await clock.settle()
    pending.get('fine.test')?.resolve(HERE)
    expect(await other).toEqual(HERE)
    expect(asked).toEqual(['hangs.test', 'fine.test'])
  })

  test('look-ups without a thread wait for one, in order', async () => {
    const { clock, asked, pending, resolve } = setUp({ maxInFlight: 2, reservedForKnown: 0 })
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

  test('a name that was resolved before keeps its addresses while the name server does not answer', async () => {
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

  test('by default 24 look-ups run at once, 8 of them reserved for names that were resolved before', async () => {
    const { clock, asked, pending, resolve } = setUp({})
    const known = Array.from({ length: 10 }, (_, name) => `${name}.known.test`)
    for (const name of known) {
      const first = resolve(name)
      pending.get(name)?.resolve(HERE)
      await first
    }
    await clock.pass(10_000)
    asked.length = 0
    for (let name = 0; name < 50; name += 1) resolve(`${name}.hangs.test`).catch(() => {})
    expect(asked).toHaveLength(16)
    for (const name of known) void resolve(name)
    expect(asked.slice(16)).toEqual(known.slice(0, 8))
    await clock.pass(5_000)
  })

  test('a name that was resolved before finds a thread while many unknown names hang', async () => {
    const { clock, asked, pending, resolve } = setUp({ maxInFlight: 4, reservedForKnown: 1 })
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

  test('an owner whose names hang leaves threads to the others, even for a name that it requested first', async () => {
    const { clock, asked, pending, resolve } = setUp({ maxInFlight: 4, reservedForKnown: 0, maxPerOwner: 2 })
    for (let name = 0; name < 50; name += 1) resolve(`${name}.hangs.test`, 'greedy').catch(() => {})
    resolve('friend.test', 'greedy').catch(() => {})
    expect(asked).toEqual(['0.hangs.test', '1.hangs.test'])
    const friend = resolve('friend.test', 'other')
    expect(asked.slice(2)).toEqual(['friend.test'])
    pending.get('friend.test')?.resolve(HERE)
    expect(await friend).toEqual(HERE)
    await clock.pass(5_000)
  })

  test('an owner whose known names hang leaves threads to the known names of others', async () => {
    const { clock, asked, pending, resolve } = setUp({ maxInFlight: 4, reservedForKnown: 1, maxPerOwner: 2 })
    const names = ['0.known.test', '1.known.test', '2.known.test', '3.known.test', 'friend.test']
    for (const name of names) {
      const first = resolve(name)
      pending.get(name)?.resolve(HERE)
      await first
    }
    await clock.pass(10_000)
    asked.length = 0
    for (const name of names.slice(0, 4)) void resolve(name, 'greedy')
    expect(asked).toEqual(['0.known.test', '1.known.test'])
    void resolve('friend.test', 'other')
    expect(asked.slice(2)).toEqual(['friend.test'])
    await clock.pass(5_000)
  })

  test('the next free thread goes to the owner who has none', async () => {
    const { clock, asked, pending, resolve } = setUp({ maxInFlight: 2, reservedForKnown: 0, maxPerOwner: 2 })
    for (let name = 0; name < 3; name += 1) resolve(`${name}.hangs.test`, 'greedy').catch(() => {})
    resolve('friend.test', 'other').catch(() => {})
    expect(asked).toEqual(['0.hangs.test', '1.hangs.test'])
    pending.get('0.hangs.test')?.reject(new Error('at last'))
    await clock.settle()
    expect(asked.slice(2)).toEqual(['friend.test'])
    await clock.pass(5_000)
  })

  test('a look-up whose callers have all timed out before it had a thread is not made', async () => {
    const { clock, asked, pending, resolve } = setUp({ maxInFlight: 1, reservedForKnown: 0 })
    for (let name = 0; name < 1_000; name += 1) resolve(`${name}.hangs.test`).catch(() => {})
    await clock.pass(5_000)
    const late = resolve('late.test')
    pending.get('0.hangs.test')?.reject(new Error('at last'))
    await clock.settle()
    expect(asked).toEqual(['0.hangs.test', 'late.test'])
    pending.get('late.test')?.resolve(HERE)
    expect(await late).toEqual(HERE)
  })

  test('a failure is passed to the caller, is not cached, and frees its thread', async () => {
    const { clock, asked, pending, resolve } = setUp({ maxInFlight: 1, reservedForKnown: 0 })
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
