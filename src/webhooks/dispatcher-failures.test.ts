import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { OK, REFUSED, setUp } from '../../test/units/dispatcher-harness.ts'
import { StoreUnavailable } from '../store/errors.ts'

/** Reads of the signing secrets get no answer until the returned function is called. */
function holdPosting({ endpoints }: ReturnType<typeof setUp>['store']): () => void {
  const { promise, resolve } = Promise.withResolvers<void>()
  const find = endpoints.findPosting
  endpoints.findPosting = (...of) => promise.then(() => find(...of))
  return resolve
}

describe('failures', () => {
  test('while nothing may be posted, the pauses grow, and the speed of the consumer stays unknown', async () => {
    const { clock, store, consumers, open, node, log } = setUp()
    consumers.rule = () => 'later'
    for (let n = 0; n < 20; n += 1) store.add('a', clock, { quietly: true })
    node.mayAct = false
    open('a')
    await clock.pass(60_000)
    expect(log.filter(({ msg }) => msg === 'lane.paused').length).toBeLessThan(30)
    node.mayAct = true
    await clock.pass(5_000)
    expect(consumers.of(1)).toHaveLength(1)
    expect(consumers.mostOpen.get('a')).toBe(6)
    expect(consumers.sent[1]!.at - consumers.sent[0]!.at).toBe(1_000)
  })

  test('a store that answers slowly says nothing about the speed of the consumer', async () => {
    const { clock, store, consumers, open } = setUp()
    consumers.rule = () => 'later'
    const answer = holdPosting(store)
    for (let n = 0; n < 20; n += 1) store.add('a', clock, { quietly: true })
    open('a')
    await clock.pass(1_500)
    answer()
    await clock.pass(10)
    // One request, as long as the speed is unknown.
    expect(consumers.openOf('a')).toHaveLength(1)
  })

  test('an attempt at the test receiver that cannot read the store is repeated and does not count', async () => {
    const { clock, store, consumers, open, log } = setUp()
    const { send } = consumers
    consumers.send = async () => {
      throw new StoreUnavailable('unavailable')
    }
    store.add('a', clock)
    open('a')
    await clock.pass(50)
    consumers.send = send
    await clock.pass(5_000)
    expect(store.rows).toMatchObject([{ state: 'delivered', attempts: [{ attemptNumber: 1 }] }])
    expect(log.map(({ msg }) => msg)).not.toContain('delivery.bug')
    expect(log.map(({ msg }) => msg)).toContain('lane.paused')
  })

  test('if the store never confirms the record of an attempt, the next lane on this node does not repeat the attempt', async () => {
    const { clock, store, consumers, dispatcher, open } = setUp()
    const { recordAttempt } = store.deliveries
    store.deliveries.recordAttempt = () => new Promise(() => {})
    const seq = store.add('a', clock)
    open('a')
    await clock.settle()
    const shut = dispatcher.shut('a')
    await clock.pass(10_000)
    await shut
    store.deliveries.recordAttempt = recordAttempt
    open('a')
    await clock.pass(1_000)
    expect(consumers.of(seq)).toHaveLength(1)
    expect(store.count('delivered')).toBe(1)
  })

  test('while the store is unavailable an ended attempt is not repeated, and it is recorded afterwards', async () => {
    const { clock, store, consumers, open } = setUp()
    consumers.rule = () => 'later'
    const seq = store.add('a', clock)
    open('a')
    await clock.settle()
    store.unavailable = true
    consumers.openOf('a')[0]?.end(OK)
    await clock.pass(60_000)
    expect(consumers.of(seq)).toHaveLength(1)
    store.unavailable = false
    await clock.pass(5_000)
    expect(store.rows[0]).toMatchObject({ state: 'delivered', attempts: { length: 1 } })
    expect(consumers.of(seq)).toHaveLength(1)
  })

  test('no delivery is lost, repeated or out of order if the store becomes unavailable at any time', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 1, max: 3_000 })), { maxLength: 6 }),
        fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }),
        fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 20 }),
        async (outages, fails, trips) => {
          const { clock, store, consumers, open } = setUp({ retryDelaysMs: [10, 50, 300, 1_200, 6_000] })
          consumers.rule = ({ seq, attemptNumber }) => (fails[(seq * 7 + attemptNumber) % 40] ? REFUSED : OK)
          let trip = 0
          store.tripMs = () => trips[trip++ % trips.length]!
          open('a')
          for (let n = 0; n < 40; n += 1) {
            store.add('a', clock, n % 3 === 0 ? {} : { after: n })
            await clock.pass(n % 5)
          }
          for (const [afterMs, forMs] of outages) {
            await clock.pass(afterMs)
            store.unavailable = true
            await clock.pass(forMs)
            store.unavailable = false
          }
          await clock.pass(200_000)
          expect(store.count('delivered') + store.count('exhausted')).toBe(40)
          for (const { attempts, delivery } of store.rows) {
            expect(attempts.map(({ attemptNumber }) => attemptNumber)).toEqual(attempts.map((_, index) => index + 1))
            expect(consumers.of(delivery.seq)).toHaveLength(attempts.length)
          }
          for (const { waitsFor, delivery } of store.rows) {
            if (waitsFor === null) continue
            const [first, lastBefore] = [consumers.of(delivery.seq)[0]!, consumers.of(waitsFor).at(-1)!]
            expect(consumers.sent.indexOf(first)).toBeGreaterThan(consumers.sent.indexOf(lastBefore))
          }
          expect(consumers.mostOpen.get('a')).toBeLessThanOrEqual(8)
        },
      ),
      { numRuns: 60 },
    )
  })

  test('a lost lease stops the lane and is reported once', async () => {
    const { clock, store, consumers, open, lost } = setUp()
    for (let n = 0; n < 20; n += 1) store.add('a', clock, { quietly: true })
    consumers.rule = () => 'later'
    open('a')
    await clock.pass(1_000)
    store.epochs.set('a', 2)
    for (const sent of [...consumers.openOf('a')]) sent.end(OK)
    await clock.pass(60_000)
    expect(lost).toEqual(['a'])
    expect(consumers.sent).toHaveLength(6)
    expect(store.count('delivered')).toBe(0)
  })

  test('an instance that returns under a newer lease records its ended attempts and repeats none', async () => {
    const { clock, store, consumers, open } = setUp()
    for (let n = 0; n < 20; n += 1) store.add('a', clock, { quietly: true })
    consumers.rule = () => 'later'
    open('a')
    await clock.pass(1_000)
    store.epochs.set('a', 2)
    for (const sent of [...consumers.openOf('a')].slice(0, 3)) sent.end(OK)
    await clock.settle()
    open('a', 2)
    consumers.rule = () => OK
    for (const sent of [...consumers.openOf('a')]) sent.end(REFUSED)
    await clock.pass(5_000)
    expect(store.count('delivered')).toBe(20)
    expect(consumers.sent).toHaveLength(23)
  })

  test('shut waits for the attempts in flight, records them, and starts no others', async () => {
    const { clock, store, consumers, dispatcher, open } = setUp()
    for (let n = 0; n < 20; n += 1) store.add('a', clock, { quietly: true })
    consumers.rule = () => 'later'
    open('a')
    await clock.pass(1_000)
    let isShut = false
    const shut = dispatcher.shut('a').then(() => {
      isShut = true
    })
    await clock.pass(1_000)
    expect(isShut).toBe(false)
    for (const sent of [...consumers.openOf('a')]) sent.end(OK)
    await shut
    expect(store.count('delivered')).toBe(6)
    expect(consumers.sent).toHaveLength(6)
    expect(clock.timers).toBe(1)
  })

  test('closing aborts attempts that still hang after 8 s, and does not record them', async () => {
    const { clock, store, consumers, dispatcher, open } = setUp()
    const seq = store.add('a', clock)
    consumers.rule = () => 'later'
    open('a')
    await clock.settle()
    const closed = dispatcher.close()
    await clock.pass(8_000)
    await closed
    expect(store.rows[0]).toMatchObject({ state: 'first', attempts: { length: 0 } })
    expect(consumers.of(seq)).toHaveLength(1)
    expect(clock.timers).toBe(0)
  })

  test.each(['shut', 'close'] as const)('a drain ends as soon as a %s with a shorter grace ends', async by => {
    const { clock, store, consumers, dispatcher, open } = setUp()
    store.add('a', clock)
    consumers.rule = () => 'later'
    open('a')
    await clock.settle()
    const drained = dispatcher.shut('a', 61_000)
    await clock.pass(1_000)
    const stopped = by === 'shut' ? dispatcher.shut('a', 8_000) : dispatcher.close()
    await clock.pass(7_999)
    expect(consumers.openOf('a')).toHaveLength(1)
    await clock.pass(1)
    expect(consumers.openOf('a')).toHaveLength(0)
    await Promise.all([drained, stopped])
    expect(store.rows[0]).toMatchObject({ state: 'first', attempts: { length: 0 } })
  })

  test('a lane that ended while it read the secret posts nothing', async () => {
    const { clock, store, consumers, dispatcher, open } = setUp()
    const answer = holdPosting(store)
    store.add('a', clock)
    open('a')
    await clock.settle()
    const shut = dispatcher.shut('a')
    await clock.pass(8_100)
    await shut
    answer()
    await clock.settle()
    expect(consumers.sent).toHaveLength(0)
  })

  test('a lane that lost its lease while it read the secret posts nothing', async () => {
    const { clock, store, consumers, open, lost } = setUp()
    consumers.rule = () => 'later'
    open('a')
    store.add('a', clock)
    await clock.pass(2_000)
    const answer = holdPosting(store)
    store.add('a', clock)
    await clock.settle()
    store.epochs.set('a', 2)
    consumers.openOf('a')[0]?.end(OK)
    await clock.settle()
    expect(lost).toEqual(['a'])
    answer()
    await clock.settle()
    expect(consumers.sent).toHaveLength(1)
  })

  test('a lane that is shut while it reads the secret posts what it has claimed', async () => {
    const { clock, store, dispatcher, open } = setUp()
    const answer = holdPosting(store)
    store.add('a', clock)
    open('a')
    await clock.settle()
    const shut = dispatcher.shut('a')
    await clock.pass(1_000)
    answer()
    await shut
    expect(store.count('delivered')).toBe(1)
  })

  test('the log has one line for each attempt, without the path of the URL and without the body', async () => {
    const { clock, store, open, log } = setUp()
    store.add('a', clock)
    open('a')
    await clock.settle()
    const lines = log.filter(({ msg }) => msg === 'delivery.attempted')
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatchObject({
      instanceId: 'a',
      eventId: 'evt_1',
      host: 'consumer.test',
      attemptNumber: 1,
      status: 200,
      error: null,
      durationMs: 0,
      next: 'delivered',
    })
    expect(JSON.stringify(lines)).not.toMatch(/consumer\.test\/|"n"|whsec/)
  })
})
