import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/manual-clock.ts'
import type { ConcurrencyLimit, ConsumerSpeed, LimitedLane, Permit } from './concurrency-limit.ts'
import { createConcurrencyLimit } from './concurrency-limit.ts'

/** Acquires as many permits as it can, at most `most`. */
class Greedy implements LimitedLane {
  readonly group: string
  speed: ConsumerSpeed = 'fast'
  isFailing = false
  readonly held: Permit[] = []
  readonly #most: number
  readonly #limit: ConcurrencyLimit
  readonly #log: string[]
  readonly #name: string

  constructor(limit: ConcurrencyLimit, log: string[], name: string, most = 8, group: string = randomUUID()) {
    this.group = group
    this.#limit = limit
    this.#log = log
    this.#name = name
    this.#most = most
  }

  onPermit(): void {
    while (this.held.length < this.#most) {
      const permit = this.#limit.acquire(this)
      if (permit === null) return
      permit.begin()
      this.#log.push(this.#name)
      this.held.push(permit)
    }
  }

  releaseOne(): void {
    this.held.shift()?.release()
  }
}

function setUp(capacity: number) {
  const clock = new ManualClock()
  const foreground = { hasPriority: false }
  const limit = createConcurrencyLimit(capacity, clock, foreground)
  const log: string[] = []
  return {
    clock,
    foreground,
    limit,
    log,
    lane: (name: string, most?: number, group?: string) => new Greedy(limit, log, name, most, group),
  }
}

describe('the concurrency limit', () => {
  test('fast lanes hold at most half the capacity', () => {
    const { lane } = setUp(20)
    const lanes = ['a', 'b', 'c'].map(name => lane(name))
    for (const each of lanes) each.onPermit()
    expect(lanes.map(({ held }) => held.length)).toEqual([8, 2, 0])
  })

  test('waiting groups get one permit each, in turn, and so do the lanes of a group', () => {
    const { lane, log } = setUp(16)
    const a = lane('a')
    const crowd = ['x', 'y', 'z'].map(name => lane(name, 8, 'crowd'))
    const alone = lane('alone')
    for (const each of [a, ...crowd, alone]) each.onPermit()
    log.length = 0
    for (let time = 0; time < 8; time += 1) a.releaseOne()
    expect(log).toEqual(['x', 'alone', 'y', 'alone', 'z', 'alone', 'x', 'alone'])
  })

  test('a permit that is given back goes to the next, and says nothing about the speed', () => {
    const { limit, lane, log } = setUp(2)
    const [a, b] = [lane('a'), lane('b')]
    const permit = limit.acquire(a)
    b.onPermit()
    expect(log).toEqual([])
    permit!.giveBack()
    expect([log, a.speed]).toEqual([['b'], 'fast'])
    const fresh = lane('c')
    fresh.speed = 'unknown'
    limit.acquire(fresh)!.giveBack()
    expect(fresh.speed).toBe('unknown')
    expect(limit.acquire(fresh)).not.toBeNull()
  })

  test('waiting lanes get one permit each, in turn', () => {
    const { lane, log } = setUp(16)
    const [a, b, c] = [lane('a'), lane('b'), lane('c')]
    for (const each of [a, b, c]) each.onPermit()
    log.length = 0
    for (let time = 0; time < 6; time += 1) a.releaseOne()
    expect(log).toEqual(['b', 'c', 'b', 'c', 'b', 'c'])
  })

  test('lanes that hang become slow after a second, and free their permits for fast lanes', async () => {
    const { clock, lane } = setUp(32)
    const hanging = [lane('x'), lane('y')]
    for (const each of hanging) each.onPermit()
    const healthy = lane('healthy')
    healthy.onPermit()
    expect(healthy.held).toHaveLength(0)
    await clock.pass(1_000)
    expect(healthy.held).toHaveLength(8)
    expect(hanging.every(({ speed }) => speed === 'slow')).toBe(true)
  })

  test('a thousand slow lanes hold at most half the capacity', async () => {
    const { clock, lane } = setUp(64)
    const dead = Array.from({ length: 1_000 }, (_, index) => lane(`dead${index}`))
    for (const each of dead) each.speed = 'slow'
    for (const each of dead) each.onPermit()
    expect(dead.reduce((sum, { held }) => sum + held.length, 0)).toBe(32)
    const healthy = lane('healthy')
    healthy.onPermit()
    expect(healthy.held).toHaveLength(8)
    await clock.pass(500)
    for (const permit of healthy.held) permit.release()
    expect(healthy.speed).toBe('fast')
  })

  test('a slow lane that answers in time becomes fast again', async () => {
    const { clock, lane } = setUp(8)
    const a = lane('a', 1)
    a.onPermit()
    await clock.pass(1_000)
    a.releaseOne()
    expect(a.speed).toBe('slow')
    a.onPermit()
    await clock.pass(10)
    a.releaseOne()
    expect(a.speed).toBe('fast')
    expect(clock.timers).toBe(0)
  })

  test('a lane of unknown speed has one permit until its first request ends', () => {
    const { lane, log } = setUp(64)
    const a = lane('a')
    a.speed = 'unknown'
    a.onPermit()
    a.onPermit()
    expect(log).toEqual(['a'])
    a.releaseOne()
    expect(a.speed).toBe('fast')
    expect(a.held).toHaveLength(8)
  })

  test('a lane whose first request hangs becomes slow and gets more permits', async () => {
    const { clock, lane } = setUp(64)
    const a = lane('a')
    a.speed = 'unknown'
    a.onPermit()
    await clock.pass(1_000)
    expect(a.speed).toBe('slow')
    expect(a.held).toHaveLength(8)
  })

  test('a new lane gets a permit at once while thousands of slow and unknown lanes hang', async () => {
    const { clock, lane } = setUp(1_024)
    const hanging = Array.from({ length: 2_000 }, (_, index) => lane(`dead${index}`))
    for (const [index, each] of hanging.entries()) each.speed = index % 2 === 0 ? 'unknown' : 'slow'
    for (const each of hanging) each.onPermit()
    for (const afterMs of [0, 999, 1, 5_000]) {
      await clock.pass(afterMs)
      const healthy = lane('healthy')
      healthy.speed = 'unknown'
      healthy.onPermit()
      expect(healthy.held).toHaveLength(1)
      healthy.releaseOne()
      expect(healthy.speed).toBe('fast')
      for (const permit of healthy.held.splice(0)) permit.release()
    }
    expect(hanging.reduce((sum, { held }) => sum + held.length, 0)).toBe(1_512)
  })

  test('lanes that fail fast start one request a millisecond, in turn; the others start theirs at once', async () => {
    const { clock, lane, log } = setUp(64)
    const failing = ['x', 'y'].map(name => lane(name, 3))
    for (const each of failing) each.isFailing = true
    for (const each of failing) each.onPermit()
    lane('healthy', 2).onPermit()
    expect(log).toEqual(['x', 'healthy', 'healthy'])
    for (const next of ['x', 'y', 'x', 'y', 'y']) {
      const before = log.length
      await clock.pass(1)
      expect(log.slice(before)).toEqual([next])
    }
    await clock.pass(10)
    expect(clock.timers).toBe(log.length)
  })

  test('lanes that fail fast do not start while the foreground has priority', async () => {
    const { clock, foreground, lane, log } = setUp(64)
    foreground.hasPriority = true
    const failing = ['x', 'y'].map(name => lane(name, 1))
    for (const each of failing) each.isFailing = true
    for (const each of failing) each.onPermit()
    lane('healthy', 1).onPermit()
    await clock.pass(10)
    expect(log).toEqual(['healthy'])
    foreground.hasPriority = false
    await clock.pass(2)
    expect(log).toEqual(['healthy', 'x', 'y'])
  })

  test('lanes that fail slowly start their requests at once, so that no permit stays unused', async () => {
    const { lane, log } = setUp(64)
    const slow = ['x', 'y'].map(name => lane(name, 2))
    for (const each of slow) Object.assign(each, { isFailing: true, speed: 'slow' })
    for (const each of slow) each.onPermit()
    expect(log).toEqual(['x', 'x', 'y', 'y'])
  })

  test('a lane that fails and is removed is not called', async () => {
    const { clock, limit, lane, log } = setUp(64)
    const [x, y] = [lane('x', 1), lane('y', 1)]
    for (const each of [x, y]) each.isFailing = true
    for (const each of [x, y]) each.onPermit()
    limit.remove(y)
    await clock.pass(10)
    expect(log).toEqual(['x'])
  })

  test('a removed lane is not called when its first request ends', () => {
    const { limit, lane, log } = setUp(8)
    const a = lane('a')
    a.speed = 'unknown'
    a.onPermit()
    limit.remove(a)
    a.releaseOne()
    expect(log).toEqual(['a'])
  })

  test('a removed lane is not called', () => {
    const { limit, lane, log } = setUp(2)
    const [a, b] = [lane('a', 1), lane('b', 1)]
    a.onPermit()
    b.onPermit()
    limit.remove(b)
    a.releaseOne()
    expect(log).toEqual(['a'])
  })
})
