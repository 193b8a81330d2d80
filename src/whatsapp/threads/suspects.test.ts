import { describe, expect, test } from 'vitest'
import { Suspects } from './suspects.ts'

const MINUTE_MS = 60_000

const HOUR_MS = 60 * MINUTE_MS

/** Lets the threads die until nothing kills them any more. @returns the deaths, and the instances that are stopped */
function runUntilQuiet(instances: readonly string[], poison: string, suspects: Suspects) {
  let deaths = 0
  for (;;) {
    if (deaths > 100) throw new Error('The cause is not found.')
    const running = instances.filter(instance => !suspects.isCause(instance))
    if (!running.includes(poison)) return { deaths, stopped: instances.filter(instance => suspects.isCause(instance)) }
    const group = suspects.groupOf(poison)
    suspects.noteDeath(running.filter(instance => suspects.groupOf(instance) === group))
    deaths += 1
  }
}

describe('the cause of deaths', () => {
  test.each([1, 2, 3, 500])('is found among %i instances, and only it is stopped', count => {
    const instances = Array.from({ length: count }, (_, n) => `inst_${n}`)
    for (const poison of [instances[0]!, instances.at(-1)!]) {
      const { deaths, stopped } = runUntilQuiet(instances, poison, new Suspects())
      expect(stopped).toEqual([poison])
      expect(deaths).toBeLessThanOrEqual(4 + Math.ceil(Math.log2(count)))
    }
  })

  test('is found again and again in a process that runs for months', () => {
    let now = 0
    const suspects = new Suspects(() => now)
    for (let incident = 0; incident < 20; incident++) {
      const instances = Array.from({ length: 100 }, (_, n) => `inst_${incident}_${n}`)
      expect(runUntilQuiet(instances, instances[42]!, suspects).stopped).toEqual([instances[42]])
      now += HOUR_MS
    }
  })

  test('is not an instance if several threads die together, and no thread is opened for each instance', () => {
    let now = 0
    const suspects = new Suspects(() => now)
    const instances = Array.from({ length: 60 }, (_, n) => `inst_${n}`)
    for (; now < HOUR_MS; now += MINUTE_MS) {
      const threads = Map.groupBy(instances, (instance, n) => suspects.groupOf(instance) ?? `thread ${n % 3}`)
      expect(threads.size).toBeLessThanOrEqual(20)
      for (const members of threads.values()) {
        suspects.noteDeath(members)
        now += 1
      }
    }
    expect(instances.filter(instance => suspects.isCause(instance))).toEqual([])
  })

  test('is also found if two instances kill their threads in turn, each shortly after the other', () => {
    let now = 0
    const suspects = new Suspects(() => now)
    for (; now < 5 * MINUTE_MS; now += 10_000) {
      for (const poison of ['a', 'b']) if (!suspects.isCause(poison)) suspects.noteDeath([poison])
    }
    expect(['a', 'b'].map(instance => suspects.isCause(instance))).toEqual([true, true])
  })

  test('is not an instance whose thread dies together with others every 2 minutes', () => {
    let now = 0
    const suspects = new Suspects(() => now)
    const order = ['a', 'b', 'c']
    for (; now < HOUR_MS; now += 2 * MINUTE_MS) {
      for (const instance of order) {
        suspects.noteDeath([instance])
        expect(suspects.isCause(instance)).toBe(false)
        now += 1
      }
      order.push(order.shift()!)
    }
  })

  test('is not searched for after a single death', () => {
    const suspects = new Suspects()
    suspects.noteDeath(['a', 'b'])
    expect(['a', 'b'].map(instance => suspects.groupOf(instance))).toEqual([null, null])
  })

  test('is forgotten after 10 minutes without a death, and when its number connects again', () => {
    let now = 0
    const suspects = new Suspects(() => now)
    for (let death = 0; death < 3; death++) suspects.noteDeath(['a'])
    expect(suspects.isCause('a')).toBe(true)
    now = 11 * MINUTE_MS
    expect(suspects.isCause('a')).toBe(false)
    for (let death = 0; death < 3; death++) suspects.noteDeath(['a'])
    suspects.forget('a')
    expect(suspects.isCause('a')).toBe(false)
  })
})
