import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/manual-clock.ts'
import type { Pace, Slot, Slots, SlotUser } from './slots.ts'
import { createSlots } from './slots.ts'

/** Wants as many slots as it may have, at most `most`. */
class Greedy implements SlotUser {
  pace: Pace = 'quick'
  readonly held: Slot[] = []
  readonly #most: number
  readonly #slots: Slots
  readonly #log: string[]
  readonly #name: string

  constructor(slots: Slots, log: string[], name: string, most = 8) {
    this.#slots = slots
    this.#log = log
    this.#name = name
    this.#most = most
  }

  onSlot(): void {
    while (this.held.length < this.#most) {
      const slot = this.#slots.take(this)
      if (slot === null) return
      this.#log.push(this.#name)
      this.held.push(slot)
    }
  }

  releaseOne(): void {
    this.held.shift()?.release()
  }
}

function setUp(capacity: number) {
  const clock = new ManualClock()
  const slots = createSlots(capacity, clock)
  const log: string[] = []
  return { clock, slots, log, user: (name: string, most?: number) => new Greedy(slots, log, name, most) }
}

describe('slots', () => {
  test('never more than half the capacity are held by quick users', () => {
    const { user } = setUp(20)
    const users = ['a', 'b', 'c'].map(name => user(name))
    for (const each of users) each.onSlot()
    expect(users.map(({ held }) => held.length)).toEqual([8, 2, 0])
  })

  test('whoever waits gets the next one in turn, one each', () => {
    const { user, log } = setUp(16)
    const [a, b, c] = [user('a'), user('b'), user('c')]
    for (const each of [a, b, c]) each.onSlot()
    log.length = 0
    for (let time = 0; time < 6; time += 1) a.releaseOne()
    expect(log).toEqual(['b', 'c', 'b', 'c', 'b', 'c'])
  })

  test('who hangs is moved out of the way after a second, and those who answer find slots', async () => {
    const { clock, user } = setUp(32)
    const hanging = [user('x'), user('y')]
    for (const each of hanging) each.onSlot()
    const healthy = user('healthy')
    healthy.onSlot()
    expect(healthy.held).toHaveLength(0)
    await clock.pass(1_000)
    expect(healthy.held).toHaveLength(8)
    expect(hanging.every(({ pace }) => pace === 'slow')).toBe(true)
  })

  test('a thousand slow users hold half the slots at most', async () => {
    const { clock, user } = setUp(64)
    const dead = Array.from({ length: 1_000 }, (_, index) => user(`dead${index}`))
    for (const each of dead) each.pace = 'slow'
    for (const each of dead) each.onSlot()
    expect(dead.reduce((sum, { held }) => sum + held.length, 0)).toBe(32)
    const healthy = user('healthy')
    healthy.onSlot()
    expect(healthy.held).toHaveLength(8)
    await clock.pass(500)
    for (const slot of healthy.held) slot.release()
    expect(healthy.pace).toBe('quick')
  })

  test('a slow user that answers in time is quick again', async () => {
    const { clock, user } = setUp(8)
    const a = user('a', 1)
    a.onSlot()
    await clock.pass(1_000)
    a.releaseOne()
    expect(a.pace).toBe('slow')
    a.onSlot()
    await clock.pass(10)
    a.releaseOne()
    expect(a.pace).toBe('quick')
    expect(clock.timers).toBe(0)
  })

  test('an untried user tries with one request, and has the rest when that ends', () => {
    const { user, log } = setUp(64)
    const a = user('a')
    a.pace = 'untried'
    a.onSlot()
    a.onSlot()
    expect(log).toEqual(['a'])
    a.releaseOne()
    expect(a.pace).toBe('quick')
    expect(a.held).toHaveLength(8)
  })

  test('one that hangs at its first request has the rest as a slow user', async () => {
    const { clock, user } = setUp(64)
    const a = user('a')
    a.pace = 'untried'
    a.onSlot()
    await clock.pass(1_000)
    expect(a.pace).toBe('slow')
    expect(a.held).toHaveLength(8)
  })

  test('beside a thousand that hang, slow ones and untried ones, an untried user that answers is tried at once', async () => {
    const { clock, user } = setUp(1_024)
    const hanging = Array.from({ length: 2_000 }, (_, index) => user(`dead${index}`))
    for (const [index, each] of hanging.entries()) each.pace = index % 2 === 0 ? 'untried' : 'slow'
    for (const each of hanging) each.onSlot()
    for (const afterMs of [0, 999, 1, 5_000]) {
      await clock.pass(afterMs)
      const healthy = user('healthy')
      healthy.pace = 'untried'
      healthy.onSlot()
      expect(healthy.held).toHaveLength(1)
      healthy.releaseOne()
      expect(healthy.pace).toBe('quick')
      for (const slot of healthy.held.splice(0)) slot.release()
    }
    expect(hanging.reduce((sum, { held }) => sum + held.length, 0)).toBe(1_512)
  })

  test('who was forgotten is not called, not even when its first request ends', () => {
    const { slots, user, log } = setUp(8)
    const a = user('a')
    a.pace = 'untried'
    a.onSlot()
    slots.forget(a)
    a.releaseOne()
    expect(log).toEqual(['a'])
  })

  test('who was forgotten is not called', () => {
    const { slots, user, log } = setUp(2)
    const [a, b] = [user('a', 1), user('b', 1)]
    a.onSlot()
    b.onSlot()
    slots.forget(b)
    a.releaseOne()
    expect(log).toEqual(['a'])
  })
})
