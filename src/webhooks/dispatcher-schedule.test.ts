import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CreepingClock, gaps, OK, REFUSED, setUp } from '../../test/units/dispatcher-harness.ts'
import { RETRY_DELAYS_MS } from '../domain/events/delivery.ts'

describe('the schedule', () => {
  test('six attempts, each exactly its delay after the end of the previous one, then exhausted', async () => {
    const { clock, store, consumers, open } = setUp()
    consumers.rule = () => REFUSED
    const seq = store.add('a', clock)
    open('a')
    await clock.pass(RETRY_DELAYS_MS.reduce((sum, delay) => sum + delay, 0))
    expect(gaps(consumers.of(seq))).toEqual([...RETRY_DELAYS_MS])
    expect(consumers.of(seq).map(({ attemptNumber }) => attemptNumber)).toEqual([1, 2, 3, 4, 5, 6])
    expect(store.rows[0]).toMatchObject({ state: 'exhausted', attempts: { length: 6 } })
    await clock.pass(3_600_000)
    expect(consumers.sent).toHaveLength(6)
  })

  test('a retry that becomes due between two readings of the clock is not missed', async () => {
    for (let step = 0.01; step < 1; step += 0.01) {
      const clock = new CreepingClock(step)
      const { store, consumers, open } = setUp({ retryDelaysMs: [60, 60, 60, 60] }, clock)
      consumers.rule = () => REFUSED
      const seq = store.add('a', clock)
      open('a')
      await clock.pass(400)
      expect(consumers.of(seq), `readings ${step} ms apart`).toHaveLength(5)
    }
  })

  test('the delay starts at the end of the attempt', async () => {
    const { clock, store, consumers, open } = setUp()
    consumers.rule = () => 'later'
    const seq = store.add('a', clock)
    open('a')
    await clock.pass(10_000)
    consumers.openOf('a')[0]?.end({ kind: 'failed', error: 'timeout' })
    await clock.pass(1_000)
    expect(gaps(consumers.of(seq))).toEqual([11_000])
    expect(store.rows[0]?.attempts[0]).toMatchObject({ durationMs: 10_000, error: 'timeout', status: null })
  })

  test('only a 2xx status ends a delivery', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 200, max: 599 }), async status => {
        const { clock, store, consumers, open } = setUp()
        consumers.rule = () => ({ kind: 'answered', status, excerpt: null })
        store.add('a', clock)
        open('a')
        await clock.settle()
        expect(store.rows[0]?.state).toBe(status < 300 ? 'delivered' : 'retry')
      }),
      { numRuns: 60 },
    )
  })

  test('retries keep their due times across a restart', async () => {
    const { clock, store, consumers, dispatcher, open } = setUp()
    consumers.rule = () => REFUSED
    const seq = store.add('a', clock)
    open('a')
    await clock.pass(1_000)
    await dispatcher.shut('a')
    await clock.pass(1_000)
    open('a')
    await clock.pass(36_000)
    expect(gaps(consumers.of(seq))).toEqual([1_000, 5_000, 30_000])
  })

  test('retries are on time behind a backlog of first attempts that hang', async () => {
    const { clock, store, consumers, open } = setUp()
    consumers.rule = ({ seq }) => (seq <= 2 ? REFUSED : 'later')
    for (let n = 0; n < 100; n += 1) store.add('a', clock, { quietly: true })
    open('a')
    await clock.pass(36_010)
    for (const seq of [1, 2]) {
      const late = gaps(consumers.of(seq)).map((gap, index) => gap - RETRY_DELAYS_MS[index]!)
      expect(late).toHaveLength(3)
      // The attempts of an endpoint that fails fast start a millisecond apart.
      expect(Math.max(...late)).toBeLessThanOrEqual(1)
      expect(Math.min(...late)).toBeGreaterThanOrEqual(0)
    }
  })

  test('thousands of retries with different due times all start on time', async () => {
    const { clock, store, consumers, open } = setUp()
    consumers.rule = ({ attemptNumber }) => (attemptNumber === 1 ? REFUSED : OK)
    open('a')
    for (let n = 0; n < 1_500; n += 1) {
      store.add('a', clock)
      await clock.pass(1)
    }
    await clock.pass(2_000)
    expect(store.count('delivered')).toBe(1_500)
    const late = store.rows.map(({ delivery }) => gaps(consumers.of(delivery.seq))[0]! - 1_000)
    expect(Math.max(...late)).toBeLessThanOrEqual(1)
    expect(Math.min(...late)).toBeGreaterThanOrEqual(0)
  })

  test('a jump of the wall clock does not change the retry delays and causes no burst', async () => {
    for (const jump of [-3_600_000, 3_600_000]) {
      const { clock, store, consumers, open } = setUp()
      consumers.rule = () => REFUSED
      const seq = store.add('a', clock)
      open('a')
      await clock.pass(500)
      clock.jump(jump)
      await clock.pass(500)
      expect(gaps(consumers.of(seq))).toEqual([1_000])
      await clock.pass(5_000)
      expect(gaps(consumers.of(seq))).toEqual([1_000, 5_000])
      expect(consumers.sent.length).toBe(3)
    }
  })

  test('a retry whose attempt failed in the future, because the clock was set back, keeps its delay', async () => {
    const { clock, store, consumers, dispatcher, open } = setUp()
    consumers.rule = () => REFUSED
    const seq = store.add('a', clock)
    open('a')
    await clock.settle()
    await dispatcher.shut('a')
    const row = store.rows[0]!
    const { dueAt, failedAt } = row.delivery
    row.delivery = { ...row.delivery, dueAt: dueAt + 3_600_000, failedAt: failedAt! + 3_600_000 }
    open('a')
    await clock.pass(999)
    expect(consumers.of(seq)).toHaveLength(1)
    await clock.pass(1)
    expect(consumers.of(seq)).toHaveLength(2)
  })

  test('after a requested attempt fails, the scheduled one keeps its due time, or its full delay if the clock was set back', async () => {
    for (const aheadMs of [0, 3_600_000]) {
      const { clock, store, consumers, dispatcher, open } = setUp({ retryDelaysMs: [10_000] })
      consumers.rule = () => REFUSED
      const seq = store.add('a', clock)
      open('a')
      await clock.settle()
      await dispatcher.shut('a')
      const row = store.rows[0]!
      const failedAt = row.delivery.failedAt! + aheadMs
      await clock.pass(4_000)
      const requested = { at: clock.now(), scheduledAt: failedAt + 10_000 }
      row.delivery = { ...row.delivery, dueAt: requested.at, failedAt, requested }
      open('a')
      await clock.settle()
      expect(consumers.of(seq)).toHaveLength(2)
      expect(row.delivery.dueAt - clock.now()).toBe(aheadMs === 0 ? 6_000 : 10_000)
    }
  })
})

describe('order', () => {
  test('first attempts start in the order of the events', async () => {
    const { clock, store, consumers, open } = setUp()
    for (let n = 0; n < 200; n += 1) store.add('a', clock, { quietly: true })
    open('a')
    await clock.settle()
    await clock.pass(100)
    expect(consumers.sent.map(({ seq }) => seq)).toEqual(Array.from({ length: 200 }, (_, index) => index + 1))
  })

  test('a successor waits until its predecessor is delivered or exhausted, then starts before later events', async () => {
    const { clock, store, consumers, open } = setUp({ retryDelaysMs: [1_000] })
    const sent = store.add('a', clock, { quietly: true })
    const delivered = store.add('a', clock, { after: sent, quietly: true })
    const read = store.add('a', clock, { after: delivered, quietly: true })
    for (let n = 0; n < 50; n += 1) store.add('a', clock, { quietly: true })
    consumers.rule = ({ seq }) => (seq === sent ? REFUSED : 'later')
    open('a')
    await clock.pass(999)
    expect(consumers.of(delivered)).toHaveLength(0)
    await clock.pass(1)
    expect(store.rows[sent - 1]?.state).toBe('exhausted')
    expect(consumers.of(delivered)).toHaveLength(0)
    consumers.openOf('a')[0]?.end(OK)
    await clock.settle()
    expect(consumers.sent.at(-1)?.seq).toBe(delivered)
    consumers.of(delivered)[0]?.end(OK)
    await clock.settle()
    expect(consumers.sent.at(-1)?.seq).toBe(read)
  })
})
