import { describe, expect, test } from 'vitest'
import { Foreground } from './foreground.ts'

function setUp() {
  const time = { now: 0 }
  return { time, foreground: new Foreground({ steady: () => time.now }) }
}

describe('the foreground', () => {
  test('has priority while any of its work runs, and two milliseconds longer', () => {
    const { time, foreground } = setUp()
    expect(foreground.hasPriority).toBe(false)
    foreground.begin()
    foreground.begin()
    foreground.end()
    time.now = 5
    expect(foreground.hasPriority).toBe(true)
    foreground.end()
    time.now = 6
    expect(foreground.hasPriority).toBe(true)
    time.now = 7
    expect(foreground.hasPriority).toBe(false)
  })

  test('loses its priority after 20 ms, and regains it after it has been quiet for a while', () => {
    const { time, foreground } = setUp()
    foreground.begin()
    time.now = 19
    expect(foreground.hasPriority).toBe(true)
    time.now = 20
    expect(foreground.hasPriority).toBe(false)
    time.now = 1_000
    expect(foreground.hasPriority).toBe(false)
    foreground.end()
    time.now = 1_042
    foreground.begin()
    time.now = 1_049
    expect(foreground.hasPriority).toBe(true)
    time.now = 1_051
    expect(foreground.hasPriority).toBe(false)
  })

  test.each([
    { busyMs: 1, quietMs: 1 },
    { busyMs: 18, quietMs: 3 },
    { busyMs: 100, quietMs: 100 },
  ])('has priority for a fifth of the time at most: $busyMs ms busy, $quietMs ms quiet', ({ busyMs, quietMs }) => {
    const { time, foreground } = setUp()
    let yielded = 0
    const pass = (ms: number) => {
      for (let passed = 0; passed < ms; passed += 1) {
        time.now += 1
        if (foreground.hasPriority) yielded += 1
      }
    }
    pass(1_000)
    while (time.now < 100_000) {
      foreground.begin()
      pass(busyMs)
      foreground.end()
      pass(quietMs)
    }
    expect(yielded / time.now).toBeLessThan(0.21)
  })
})
