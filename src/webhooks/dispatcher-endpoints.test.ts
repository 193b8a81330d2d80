import { describe, expect, test } from 'vitest'
import { OK, REFUSED, setUp } from '../../test/units/dispatcher-harness.ts'
import { DEFAULT_ENDPOINT } from '../domain/events/endpoint.ts'

describe('the endpoints of an instance', () => {
  test('have separate limits of requests in flight; one that hangs does not delay another', async () => {
    const { clock, store, consumers, open } = setUp()
    store.endpointsOf.set('a', ['hangs'])
    consumers.rule = ({ instanceId }) => (instanceId === 'hangs' ? 'later' : OK)
    for (let n = 0; n < 50; n += 1) store.add('a', clock, { quietly: true, endpoint: 'hangs' })
    open('a')
    await clock.pass(2_000)
    expect(consumers.openOf('hangs')).toHaveLength(6)
    const seqs = Array.from({ length: 20 }, () => store.add('a', clock))
    await clock.settle()
    expect(seqs.map(seq => consumers.of(seq).length)).toEqual(seqs.map(() => 1))
  })

  test('share the requests of a node fairly: the instances in turn, then the endpoints of each', async () => {
    const { clock, store, consumers, open } = setUp({ maxInFlight: 8 })
    const others = ['a1', 'a2', 'a3']
    store.endpointsOf.set('a', others)
    consumers.rule = () => 'later'
    for (let n = 0; n < 60; n += 1) {
      for (const endpoint of others) store.add('a', clock, { quietly: true, endpoint })
      for (const instanceId of ['a', 'b']) store.add(instanceId, clock, { quietly: true })
    }
    open('a')
    open('b')
    await clock.settle()
    const endNext = async (count: number) => {
      for (const sent of consumers.sent.slice(count, count + 1)) sent.end(OK)
      await clock.settle()
    }
    const WARM_UP = 20
    const COUNTED = 80
    for (let count = 0; count < WARM_UP + COUNTED; count += 1) await endNext(count)
    const counts: Record<string, number> = {}
    for (const { instanceId: to } of consumers.sent.slice(WARM_UP, WARM_UP + COUNTED))
      counts[to] = (counts[to] ?? 0) + 1
    const [each, half] = [COUNTED / 8, COUNTED / 2]
    expect(counts).toEqual({ a: each, a1: each, a2: each, a3: each, b: half })
  })

  test('one that fails gets new events a little later, and not while the foreground has priority', async () => {
    const { clock, store, consumers, open } = setUp({ retryDelaysMs: [60_000] })
    consumers.rule = () => REFUSED
    open('a')
    store.add('a', clock)
    await clock.pass(400)
    const second = store.add('a', clock)
    await clock.pass(99)
    expect(consumers.of(second)).toEqual([])
    store.foreground.hasPriority = true
    await clock.pass(500)
    expect(consumers.of(second)).toEqual([])
    store.foreground.hasPriority = false
    await clock.pass(5)
    expect(consumers.of(second)).toHaveLength(1)
  })

  test('a paused one gets no posts, has no timer and reads little; a hint resumes it', async () => {
    const { clock, store, consumers, open } = setUp()
    store.endpointsOf.set('a', ['paused'])
    store.inactive.add('paused')
    const seqs = Array.from({ length: 10 }, () => store.add('a', clock, { quietly: true, endpoint: 'paused' }))
    open('a')
    await clock.pass(1_000)
    const before = store.reads
    await clock.pass(90_000)
    expect(consumers.sent).toEqual([])
    expect(clock.timers).toBe(1)
    expect(store.reads - before).toBeLessThanOrEqual(6)
    store.inactive.clear()
    store.hints.publish('webhook', 'a')
    await clock.settle()
    expect(consumers.sent.map(({ seq }) => seq)).toEqual(seqs)
  })

  test('one that is resumed while its state is read gets its events at once', async () => {
    const { clock, store, consumers, open } = setUp()
    const { promise, resolve } = Promise.withResolvers<void>()
    const { findPosting } = store.endpoints
    store.endpoints.findPosting = async (instanceId, endpointId) => {
      const state = await findPosting(instanceId, endpointId)
      await promise
      return state
    }
    store.inactive.add(DEFAULT_ENDPOINT)
    const seq = store.add('a', clock, { quietly: true })
    open('a')
    await clock.settle()
    store.inactive.clear()
    store.hints.publish('webhook', 'a')
    resolve()
    await clock.settle()
    expect(consumers.of(seq)).toHaveLength(1)
  })

  test('one that is resumed while the store is unavailable gets its events soon afterwards', async () => {
    const { clock, store, consumers, open } = setUp()
    store.inactive.add(DEFAULT_ENDPOINT)
    const seq = store.add('a', clock, { quietly: true })
    open('a')
    await clock.pass(1_000)
    store.inactive.clear()
    store.unavailable = true
    store.hints.publish('webhook', 'a')
    await clock.pass(1_000)
    store.unavailable = false
    await clock.pass(5_000)
    expect(consumers.of(seq)).toHaveLength(1)
  })

  test('a lane is opened for a new endpoint, and shut for a deleted one', async () => {
    const { clock, store, consumers, open } = setUp()
    open('a')
    await clock.settle()
    const seq = store.add('a', clock, { endpoint: 'new' })
    await clock.settle()
    expect(consumers.sent).toEqual([])
    store.endpointsOf.set('a', ['new'])
    store.hints.publish('webhook', 'a')
    await clock.settle()
    expect(consumers.of(seq)).toHaveLength(1)
    store.endpointsOf.set('a', [])
    store.hints.publish('webhook', 'a')
    await clock.settle()
    const late = store.add('a', clock, { endpoint: 'new' })
    await clock.settle()
    expect(consumers.of(late)).toEqual([])
  })

  test('their list is read again after a failure of the store', async () => {
    const { clock, store, consumers, open } = setUp()
    store.endpointsOf.set('a', ['other'])
    const seq = store.add('a', clock, { quietly: true, endpoint: 'other' })
    store.unavailable = true
    open('a')
    await clock.pass(3_000)
    store.unavailable = false
    await clock.pass(1_500)
    expect(consumers.of(seq)).toHaveLength(1)
  })
})
