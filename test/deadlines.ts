import { availableParallelism, loadavg } from 'node:os'

/**
 * The deadlines of the tests that only end a wait. They measure nothing, so they are long. On two cores under a load of
 * 15, a step takes about eight times as long as on an idle machine, and each deadline is several times as long as that.
 */

/** For one condition or one response. */
export const CONDITION_WITHIN_MS = 120_000
/** For a program to start: the service, the simulator, PostgreSQL, a browser. */
export const START_WITHIN_MS = 180_000
/** For every instance of a service under load to work again after a restart or a fault. */
export const RECOVERS_WITHIN_MS = 300_000
/** For a whole test, and for each of its hooks. */
export const TEST_WITHIN_MS = 300_000
/** For a test of many kills, restarts or nodes. */
export const LONG_TEST_WITHIN_MS = 900_000

/** Scales a time that holds on an idle machine to the current load of this one. */
export function onThisMachine(idleMs: number): number {
  const [lastMinute = 0] = loadavg()
  return idleMs * Math.max(1, lastMinute / availableParallelism())
}
