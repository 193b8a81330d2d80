import { describe, expect, test } from 'vitest'
import { OK, REFUSED, setUp } from '../../test/units/dispatcher-harness.ts'

test('a node that may have lost its leases posts no first attempts and no retries until they are renewed', async () => {
  const { clock, store, consumers, open, node } = setUp()
  consumers.rule = () => REFUSED
  const seq = store.add('a', clock)
  open('a')
  await clock.pass(0)
  expect(consumers.sent).toHaveLength(1)
  node.mayAct = false
  store.add('a', clock)
  await clock.pass(60_000)
  expect(consumers.sent).toHaveLength(1)
  node.mayAct = true
  await clock.pass(5_000)
  expect(consumers.sent.length).toBeGreaterThan(1)
  expect(consumers.of(seq).map(({ attemptNumber }) => attemptNumber)).toEqual([1, 2])
  expect(store.rows[0]?.attempts).toHaveLength(2)
})

describe('isolation', () => {
  test('an instance has at most 8 requests in flight, 6 of them first attempts', async () => {
    const { clock, store, consumers, open } = setUp({ retryDelaysMs: [1_000, 1_000] })
    consumers.rule = ({ seq, attemptNumber }) => (seq <= 20 && attemptNumber === 1 ? REFUSED : 'later')
    for (let n = 0; n < 100; n += 1) store.add('a', clock, { quietly: true })
    open('a')
    await clock.pass(500)
    expect(consumers.openOf('a')).toHaveLength(6)
    await clock.pass(5_000)
    expect(consumers.openOf('a')).toHaveLength(8)
    expect(consumers.mostOpen.get('a')).toBe(8)
    expect(consumers.mostFirstsOpen.get('a')).toBe(6)
  })

  test('a backlog of retries leaves two attempts to new events', async () => {
    const { clock, store, consumers, open } = setUp({ retryDelaysMs: [1_000, 1_000] })
    consumers.rule = ({ attemptNumber }) => (attemptNumber === 1 ? REFUSED : 'later')
    for (let n = 0; n < 100; n += 1) store.add('a', clock, { quietly: true })
    open('a')
    await clock.pass(2_000)
    expect(consumers.openOf('a')).toHaveLength(8)
    consumers.rule = () => 'later'
    const fresh = [store.add('a', clock), store.add('a', clock)]
    for (let n = 0; n < 2; n += 1) {
      consumers.openOf('a')[0]?.end(OK)
      await clock.settle()
    }
    expect(fresh.map(seq => consumers.of(seq).length)).toEqual([1, 1])
  })

  test('a new event waits briefly for a consumer that fails, so that it does not compete with those that answer', async () => {
    const { clock, store, consumers, open } = setUp({ retryDelaysMs: [60_000] })
    consumers.rule = () => REFUSED
    open('a')
    const first = store.add('a', clock)
    await clock.settle()
    expect(consumers.of(first)).toHaveLength(1)
    consumers.rule = () => OK
    const [second, third] = [store.add('a', clock), store.add('a', clock)]
    await clock.pass(99)
    expect(consumers.of(second)).toHaveLength(0)
    await clock.pass(201)
    expect([second, third].map(seq => consumers.of(seq).length)).toEqual([1, 1])
    const fourth = store.add('a', clock)
    await clock.settle()
    expect(consumers.of(fourth)).toHaveLength(1)
  })

  test('an instance whose deliveries are being read again keeps its turn for a free permit', async () => {
    const { clock, store, consumers, open } = setUp({ maxInFlight: 2 })
    for (const id of ['busy', 'a', 'b']) {
      open(id)
      store.add(id, clock)
      await clock.settle()
    }
    consumers.rule = () => 'later'
    for (const id of ['busy', 'a', 'b']) {
      store.add(id, clock)
      await clock.settle()
    }
    expect(consumers.openOf('busy')).toHaveLength(1)
    store.tripMs = () => 50
    store.hints.publish('deliveries', 'a')
    consumers.openOf('busy')[0]?.end(OK)
    await clock.settle()
    expect(consumers.openOf('a')).toHaveLength(1)
  })

  test('a hundred dead consumers do not delay one that answers', async () => {
    const { clock, store, consumers, open } = setUp({ maxInFlight: 64 })
    consumers.rule = ({ instanceId }) => (instanceId === 'alive' ? OK : 'later')
    open('alive')
    store.add('alive', clock)
    await clock.settle()
    for (let dead = 0; dead < 100; dead += 1) {
      for (let n = 0; n < 20; n += 1) store.add(`dead${dead}`, clock, { quietly: true })
      open(`dead${dead}`)
    }
    for (let second = 0; second < 20; second += 1) {
      await clock.pass(1_000)
      const seq = store.add('alive', clock)
      await clock.settle()
      expect(consumers.of(seq)).toHaveLength(1)
      const openNow = [...consumers.open.values()].reduce((sum, { length }) => sum + length, 0)
      // Consumers of unknown speed have a limit of the same size.
      expect(openNow).toBeLessThanOrEqual(2 * 64)
    }
  })

  test('after a start with a hundred dead consumers, a consumer that answers gets its first event at once', async () => {
    const { clock, store, consumers, open } = setUp({ maxInFlight: 128 })
    consumers.rule = ({ instanceId }) => (instanceId.startsWith('alive') ? OK : 'later')
    for (let dead = 0; dead < 100; dead += 1) {
      for (let n = 0; n < 20; n += 1) store.add(`dead${dead}`, clock, { quietly: true })
      open(`dead${dead}`)
    }
    for (let second = 0; second < 20; second += 1) {
      open(`alive${second}`)
      const seqs = Array.from({ length: 20 }, () => store.add(`alive${second}`, clock))
      await clock.settle()
      expect(seqs.map(seq => consumers.of(seq).length)).toEqual(seqs.map(() => 1))
      await clock.pass(1_000)
    }
  })

  test('the number of reads does not grow with the backlog', async () => {
    const reads: number[] = []
    for (const waiting of [100, 10_000]) {
      const { clock, store, consumers, open } = setUp()
      consumers.rule = ({ instanceId }) => (instanceId === 'dead' ? 'later' : OK)
      for (let n = 0; n < waiting; n += 1) store.add('dead', clock, { quietly: true })
      open('dead')
      await clock.pass(10_000)
      reads.push(store.reads)
    }
    expect(reads[1]).toBe(reads[0])
  })

  test('an idle lane reads nothing and has no timer, except for the poll', async () => {
    const { clock, store, open } = setUp()
    open('a')
    await clock.settle()
    const before = store.reads
    const { timers } = clock
    expect(timers).toBe(1)
    await clock.pass(60_000)
    expect(store.reads - before).toBeLessThanOrEqual(3)
    expect(clock.timers).toBe(1)
  })

  test('an event whose hint was lost is posted within half a minute', async () => {
    const { clock, store, consumers, open } = setUp()
    for (const id of ['a', 'b', 'c']) open(id)
    await clock.settle()
    const seq = store.add('b', clock, { quietly: true })
    await clock.pass(31_000)
    expect(consumers.of(seq)).toHaveLength(1)
  })
})

describe('the secret', () => {
  test('each attempt is signed with the secrets that are valid at its time', async () => {
    const { clock, store, consumers, open } = setUp()
    consumers.rule = () => REFUSED
    const seq = store.add('a', clock)
    open('a')
    await clock.settle()
    store.secrets = { current: 'whsec_BBBB', previous: ['whsec_AAAA'] }
    store.hints.publish('webhook', 'a')
    await clock.pass(1_000)
    const [first, second] = consumers.of(seq)
    expect(first?.headers['X-Service-Signature']).not.toBe(second?.headers['X-Service-Signature'])
    expect(first?.headers['webhook-signature']?.split(' ')).toHaveLength(1)
    expect(second?.headers['webhook-signature']?.split(' ')).toHaveLength(2)
  })

  test('a rotation whose hint was lost takes effect within a second', async () => {
    const { clock, store, consumers, open } = setUp()
    const before = store.add('a', clock)
    open('a')
    await clock.settle()
    store.secrets = { current: 'whsec_BBBB', previous: [] }
    await clock.pass(1_000)
    const after = store.add('a', clock)
    await clock.settle()
    const signature = (seq: number) => consumers.of(seq)[0]?.headers['webhook-signature']
    expect(signature(before)).toBeDefined()
    expect(signature(after)).not.toBe(signature(before))
  })
})
