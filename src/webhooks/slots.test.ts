import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/manual-clock.ts'
import type { Slot, Slots, SlotUser } from './slots.ts'
import { createSlots } from './slots.ts'

/** Wants as many slots as it may have, at most `most`. */
class Greedy implements SlotUser {
  slow = false
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
    expect(hanging.every(({ slow }) => slow)).toBe(true)
  })

  test('a thousand slow users hold half the slots at most', async () => {
    const { clock, user } = setUp(64)
    const dead = Array.from({ length: 1_000 }, (_, index) => user(`dead${index}`))
    for (const each of dead) each.slow = true
    for (const each of dead) each.onSlot()
    expect(dead.reduce((sum, { held }) => sum + held.length, 0)).toBe(32)
    const healthy = user('healthy')
    healthy.onSlot()
    expect(healthy.held).toHaveLength(8)
    await clock.pass(500)
    for (const slot of healthy.held) slot.release()
    expect(healthy.slow).toBe(false)
  })

  test('a slow user that answers in time is quick again', async () => {
    const { clock, user } = setUp(8)
    const a = user('a', 1)
    a.onSlot()
    await clock.pass(1_000)
    a.releaseOne()
    expect(a.slow).toBe(true)
    a.onSlot()
    await clock.pass(10)
    a.releaseOne()
    expect(a.slow).toBe(false)
    expect(clock.timers).toBe(0)
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
