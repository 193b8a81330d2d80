import { expect, test } from 'vitest'
import { repeat } from './repeat.ts'

const LONG_MS = 600_000

/** Rounds that end when the test lets them. */
function manualRounds() {
  const ends: PromiseWithResolvers<void>[] = []
  const started: PromiseWithResolvers<void>[] = []
  const at = <T>(list: PromiseWithResolvers<T>[], n: number) => (list[n] ??= Promise.withResolvers<T>())
  let count = 0
  return {
    round() {
      const n = count++
      at(started, n).resolve()
      return at(ends, n).promise
    },
    count: () => count,
    started: (n: number) => at(started, n).promise,
    end: (n: number) => at(ends, n).resolve(),
    fail: (n: number) => at(ends, n).reject(new Error(`round ${n}`)),
  }
}

test('the first round comes at once, and the next after the pause', async () => {
  const rounds = manualRounds()
  const repeated = repeat(rounds.round, { everyMs: 1, onFailed: expect.unreachable })
  await rounds.started(0)
  rounds.end(0)
  await rounds.started(1)
  rounds.end(1)
  await rounds.started(2)
  rounds.end(2)
  await repeated.stop()
})

test('a failed round is reported, and the next one comes', async () => {
  const rounds = manualRounds()
  const failures: unknown[] = []
  const repeated = repeat(rounds.round, { everyMs: 1, onFailed: error => failures.push(error) })
  await rounds.started(0)
  rounds.fail(0)
  await rounds.started(1)
  expect(failures).toEqual([new Error('round 0')])
  rounds.end(1)
  await repeated.stop()
})

test('waking starts a round now, or right after the current one', async () => {
  const rounds = manualRounds()
  const repeated = repeat(rounds.round, { firstAfterMs: LONG_MS, everyMs: LONG_MS, onFailed: expect.unreachable })
  repeated.wake()
  await rounds.started(0)
  repeated.wake()
  rounds.end(0)
  await rounds.started(1)
  rounds.end(1)
  await repeated.stop()
  expect(rounds.count()).toBe(2)
})

test('stopping waits for the current round, whose failure is not reported', async () => {
  const rounds = manualRounds()
  const repeated = repeat(rounds.round, { everyMs: LONG_MS, onFailed: expect.unreachable })
  await rounds.started(0)
  let isStopped = false
  const stopped = repeated.stop().then(() => {
    isStopped = true
  })
  await new Promise(setImmediate)
  expect(isStopped).toBe(false)
  rounds.fail(0)
  await stopped
  expect(rounds.count()).toBe(1)
})

test('stopping in a pause ends it', async () => {
  const rounds = manualRounds()
  const repeated = repeat(rounds.round, { firstAfterMs: LONG_MS, everyMs: LONG_MS, onFailed: expect.unreachable })
  await repeated.stop()
  expect(rounds.count()).toBe(0)
})
