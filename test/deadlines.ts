import { availableParallelism, loadavg } from 'node:os'

/**
 * Every deadline of the tests that only ends a wait. None of them measures anything, so that they are long: on two cores
 * under a load of 15 a step takes about eight times as long as alone, and each of these is several times that.
 */

/** For one condition, or one answer. */
export const CONDITION_WITHIN_MS = 120_000
/** For a program to start: the service, the simulator, PostgreSQL, a browser. */
export const START_WITHIN_MS = 180_000
/** For a whole test, and for what comes before and after it. */
export const TEST_WITHIN_MS = 300_000
/** For a test of many kills, restarts or nodes. */
export const LONG_TEST_WITHIN_MS = 900_000

/** What is promised of a machine that has nothing else to do, on this one as busy as it is now. */
export function onThisMachine(idleMs: number): number {
  const [lastMinute = 0] = loadavg()
  return idleMs * Math.max(1, lastMinute / availableParallelism())
}
